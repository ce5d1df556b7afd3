/** Namespaces: their own finalizers, which only `/finalize` writes, hold them (namespace/strategy.go and storage.go). */
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { type JsonObject, listAt, objectAt } from '@coracle/apimachinery/types/read-value';
import { keepStatus } from '@coracle/apimachinery/types/strategy';

const finalizersOf = (namespace: JsonObject): readonly unknown[] => listAt(namespace, 'spec', 'finalizers');

/** Whatever else has to end first, the namespace controller is among it. */
export function prepareNewNamespace(namespace: Record<string, unknown>): void {
  const finalizers = finalizersOf(namespace);
  if (finalizers.includes('kubernetes')) return;
  namespace['spec'] = { ...objectAt(namespace, 'spec'), finalizers: [...finalizers, 'kubernetes'] };
}

export function keepFinalizers(namespace: UnstructuredObject, old: Readonly<UnstructuredObject>): UnstructuredObject {
  const before = old['spec'] as { readonly finalizers?: readonly string[] } | undefined;
  const spec = (namespace['spec'] ?? {}) as { finalizers?: string[] };
  if (before?.finalizers === undefined) delete spec.finalizers;
  else spec.finalizers = [...before.finalizers];
  namespace['spec'] = spec;
  return keepStatus(namespace, old);
}

export const isHeldByFinalizers = (namespace: JsonObject): boolean => finalizersOf(namespace).length > 0;

export function markTerminating(namespace: UnstructuredObject): void {
  namespace['status'] = { ...objectAt(namespace, 'status'), phase: 'Terminating' };
}
