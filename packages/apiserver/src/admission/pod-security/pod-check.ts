/** What a check of the Pod Security Standards is made of, and the words upstream's texts are made of. */

import type { DeepReadonly } from '@coracle/apimachinery/meta/object';
import type * as types from '@coracle/apimachinery/types/types';

export type SecurityContext = DeepReadonly<types.SecurityContext>;

export type CheckedContainer = DeepReadonly<types.Container>;

export type CheckedPodSpec = DeepReadonly<Partial<types.PodSpec>>;

export interface CheckedPod {
  readonly annotations: Readonly<Record<string, string>>;
  readonly spec: CheckedPodSpec;
}

/** Why a Pod is refused: `reason (detail)`. */
export interface Violation {
  readonly reason: string;
  readonly detail: string;
}

/** One check; `minor` is the version of the standard it is asked for (1.<minor>). */
export interface PodCheck {
  readonly level: 'baseline' | 'restricted';
  /** The first version that has it. */
  readonly since: number;
  /** A baseline check that says nothing beside its stricter sister, from that version of the restricted level on. */
  readonly coveredSince?: number;
  readonly run: (pod: CheckedPod, minor: number) => Violation | undefined;
}

/** Every container, in upstream's order: init, plain, ephemeral. */
export const allContainers = (spec: CheckedPodSpec): readonly CheckedContainer[] => [
  ...(spec.initContainers ?? []),
  ...(spec.containers ?? []),
  ...(spec.ephemeralContainers ?? []),
];

export const plural = (word: string, count: number, many = `${word}s`): string => (count === 1 ? word : many);

/** `"a", "b"` */
export const quoted = (names: Iterable<string>): string => [...names].map((name) => JSON.stringify(name)).join(', ');

/** `containers "a", "b"` */
export const containersNamed = (names: readonly string[]): string =>
  `${plural('container', names.length)} ${quoted(names)}`;

/** Those who do something, and what it is. */
interface Found {
  readonly names: readonly string[];
  /** `pod and container "a"`; undefined when nobody did it. */
  readonly who: string | undefined;
  /** Each once, in order. */
  readonly values: readonly string[];
}

/** What `read` finds in containers. */
export const inContainers = (spec: CheckedPodSpec, read: (container: CheckedContainer) => readonly string[]): Found =>
  found(
    [],
    allContainers(spec).map((container) => ({ name: container.name, values: read(container) })),
  );

/** What `read` finds in the security contexts of a Pod and its containers. */
export const inContexts = (spec: CheckedPodSpec, read: (context: SecurityContext) => readonly string[]): Found =>
  found(
    read(spec.securityContext ?? {}),
    allContainers(spec).map(({ name, securityContext }) => ({ name, values: read(securityContext ?? {}) })),
  );

function found(
  ofPod: readonly string[],
  ofContainers: readonly { readonly name: string; readonly values: readonly string[] }[],
): Found {
  const bad = ofContainers.filter(({ values }) => values.length > 0);
  const names = bad.map(({ name }) => name);
  const parts = [...(ofPod.length > 0 ? ['pod'] : []), ...(bad.length > 0 ? [containersNamed(names)] : [])];
  const who = parts.length === 0 ? undefined : parts.join(' and ');
  return { names, who, values: distinct([...ofPod, ...bad.flatMap(({ values }) => values)]) };
}

/** As values of what is there or not. */
export const isSet = (condition: boolean): readonly string[] => (condition ? [''] : []);

export const distinct = (texts: Iterable<string>): string[] => [...new Set(texts)].sort();

/** The violation of those who do something: none where nobody does. */
export const violationBy = (who: string | undefined, reason: string, detail: string): Violation | undefined =>
  who === undefined ? undefined : { reason, detail: `${who} ${detail}` };
