/** Labels of nodes that have a newer name (pkg/api/node/util.go). */
import { objectsAt, textAt } from '@coracle/apimachinery/types/read-value';
import { warnEach } from './collect.ts';
import deprecated from './deprecated.json' with { type: 'json' };

const REPLACED: Readonly<Record<string, readonly string[]>> = deprecated.nodeLabels;

/** The label that has taken the place of this one; the same where none has. */
export const successorOf = (key: string): string => (Object.hasOwn(REPLACED, key) ? REPLACED[key]![1]! : key);

/** What is wrong with naming this label; undefined when nothing is. */
export function replacedLabel(key: string): string | undefined {
  const [since, successor] = Object.hasOwn(REPLACED, key) ? REPLACED[key]! : [];
  return since && `deprecated since ${since}; use "${successor}" instead`;
}

/** One warning for each old label that the expressions at `path` name. */
export const expressionWarnings = (found: string[], term: unknown, path: string): void =>
  warnEach(found, objectsAt(term, 'matchExpressions'), (expression, i) => {
    const key = textAt(expression, 'key');
    const why = replacedLabel(key);
    return why === undefined ? undefined : [`${path}.matchExpressions[${i}].key: ${key} is ${why}`];
  });
