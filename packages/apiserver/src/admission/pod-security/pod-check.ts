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

/** `pod and container "a"`; undefined when nobody did it. */
export function setters(byPod: boolean, containers: readonly string[]): string | undefined {
  const parts = [...(byPod ? ['pod'] : []), ...(containers.length > 0 ? [containersNamed(containers)] : [])];
  return parts.length === 0 ? undefined : parts.join(' and ');
}

/** Names of the containers for which `test` holds. */
export const containersWhere = (spec: CheckedPodSpec, test: (container: CheckedContainer) => boolean): string[] =>
  allContainers(spec)
    .filter(test)
    .map(({ name }) => name);
