/**
 * How often the template of a DaemonSet has changed: a field of old versions that v1 shows as an annotation. It belongs to
 * the server: a create may begin at a higher number, an update keeps it or counts one more (daemonset/strategy.go).
 */

import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { TEMPLATE_GENERATION } from '../defaults/workloads.ts';

/** The annotation of a new object (its defaults are set): at least 1. */
export function startTemplateGeneration(object: UnstructuredObject): void {
  if (!(generationOf(object) >= 1n)) set(object, 1n);
}

/** The annotation of an updated object: what `old` has, one more when the template changed. */
export function keepTemplateGeneration(object: UnstructuredObject, old: Readonly<UnstructuredObject>): void {
  const isSame = deepEqual(templateOf(object), templateOf(old));
  set(object, generationOf(old) + (isSame ? 0n : 1n));
}

const templateOf = (object: Readonly<UnstructuredObject>): unknown =>
  (object['spec'] as { readonly template?: unknown } | undefined)?.template;

/** 0 where an object was stored before there was a number. */
const generationOf = ({ metadata }: Readonly<UnstructuredObject>): bigint =>
  BigInt(metadata.annotations?.[TEMPLATE_GENERATION] ?? '0');

function set({ metadata }: UnstructuredObject, generation: bigint): void {
  metadata.annotations = { ...metadata.annotations, [TEMPLATE_GENERATION]: String(generation) };
}
