/** The options of a request for an object graph, and what they leave of one. */

import { isJsonObject, type JsonObject } from '@coracle/apimachinery/meta/own-property';
import {
  fromLabelSelectorObject,
  type LabelSelectorObject,
  matchesLabels,
} from '@coracle/apimachinery/selector/label-selector';

/** Upstream's ObjectGraphOptions. */
export interface ObjectGraphOptions {
  /** True unless said otherwise. */
  readonly includeOptionalNodes?: boolean;
  /** Over the labels of the nodes, not of the objects. */
  readonly labelSelector?: LabelSelectorObject;
}

/**
 * Reads the options out of a decoded body; unknown members are ignored, null is as good as absent. Throws TypeError for a
 * member of a wrong type.
 */
export function readGraphOptions(value: unknown): ObjectGraphOptions {
  if (value === undefined || value === null) return {};
  const options = expectObject(value, 'the body');
  const { includeOptionalNodes, labelSelector } = options;
  if (isGiven(includeOptionalNodes) && typeof includeOptionalNodes !== 'boolean')
    throw new TypeError('includeOptionalNodes is not a boolean');
  return {
    ...(isGiven(includeOptionalNodes) && { includeOptionalNodes: includeOptionalNodes as boolean }),
    ...(isGiven(labelSelector) && { labelSelector: readSelector(expectObject(labelSelector, 'labelSelector')) }),
  };
}

function readSelector({ matchLabels, matchExpressions }: JsonObject): LabelSelectorObject {
  if (isGiven(matchLabels))
    for (const [key, value] of Object.entries(expectObject(matchLabels, 'labelSelector.matchLabels')))
      expectText(value, `labelSelector.matchLabels[${key}]`);
  if (isGiven(matchExpressions)) {
    if (!Array.isArray(matchExpressions)) throw new TypeError('labelSelector.matchExpressions is not a list');
    for (const expression of matchExpressions) {
      const { key, operator, values } = expectObject(expression, 'an entry of labelSelector.matchExpressions');
      for (const text of [key, operator]) if (isGiven(text)) expectText(text, 'a member of a matchExpression');
      if (!isGiven(values)) continue;
      if (!Array.isArray(values)) throw new TypeError('values of a matchExpression is not a list');
      for (const text of values) expectText(text, 'a value of a matchExpression');
    }
  }
  return {
    ...(isGiven(matchLabels) && { matchLabels: matchLabels as Record<string, string> }),
    ...(isGiven(matchExpressions) && {
      matchExpressions: (matchExpressions as JsonObject[]).map(({ key, operator, values }) => ({
        key: (key as string | undefined) ?? '',
        operator: (operator as string | undefined) ?? '',
        values: (values as string[] | undefined) ?? [],
      })),
    }),
  };
}

const isGiven = (value: unknown): boolean => value !== undefined && value !== null;

function expectObject(value: unknown, what: string): JsonObject {
  if (!isJsonObject(value)) throw new TypeError(`${what} is not an object`);
  return value;
}

function expectText(value: unknown, what: string): void {
  if (typeof value !== 'string') throw new TypeError(`${what} is not a string`);
}

/** What `filterGraph` reads of a node. */
interface Filtered<T> {
  readonly labels: Readonly<Record<string, string>>;
  readonly optional?: true;
  readonly children?: readonly T[];
}

/**
 * Leaves out what the options do not ask for. The root stays whatever it is. With `below: 'go'`, upstream's rule, a node
 * that goes takes along what is below it; with `'stay'` what is below and asked for takes its place. A selector that
 * cannot be understood leaves everything.
 */
export function filterGraph<T extends Filtered<T>>(
  root: T,
  options: ObjectGraphOptions,
  { below = 'go' }: { readonly below?: 'go' | 'stay' } = {},
): T {
  const matches = matcherOf(options.labelSelector);
  const keeps = (node: T): boolean =>
    !(node.optional && options.includeOptionalNodes === false) && matches(node.labels);
  const childrenOf = (node: T): T[] =>
    (node.children ?? []).flatMap((child) => {
      if (keeps(child)) return [filtered(child)];
      return below === 'stay' ? childrenOf(child) : [];
    });
  const filtered = (node: T): T => {
    const { children: _, ...rest } = node;
    const children = childrenOf(node);
    return { ...rest, ...(children.length > 0 && { children }) } as unknown as T;
  };
  return filtered(root);
}

function matcherOf(object: LabelSelectorObject | undefined): (labels: Readonly<Record<string, string>>) => boolean {
  if (object === undefined) return () => true;
  try {
    const selector = fromLabelSelectorObject(object);
    return (labels) => matchesLabels(selector, labels);
  } catch {
    return () => true;
  }
}
