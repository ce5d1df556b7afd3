/** Fills an object in from what its sources hold at that moment (annotation `config.kubernetes.io/apply-time-mutation`). */
import type { KubeObject, ReadonlyObject } from '@coracle/apimachinery/meta/object';
import type { Declared } from '../plan/declared.ts';
import { keyOfRef, refText } from '../plan/object-ref.ts';
import { SubstitutionError, sourceId, substitute } from '../plan/substitutions.ts';
import { MUTATION } from '../status/metadata-keys.ts';
import type { ServedKinds } from './kind-catalog.ts';
import type { Target } from './target.ts';

export interface FillInOptions {
  /** Reads with the rights of the sync. */
  readonly target: Target;
  readonly kinds: () => Promise<ServedKinds>;
  readonly signal: AbortSignal;
}

/**
 * The object as it is to be applied; the same where nothing is filled in, and where nothing of it would be applied.
 * @throws SubstitutionError for a source or a field that is not there, ApiError when a source may not be read
 */
export async function fillIn(
  one: Declared,
  live: KubeObject | undefined,
  { target, kinds, signal }: FillInOptions,
): Promise<Declared> {
  const { substitutions = [] } = one;
  if (substitutions.length === 0 || (live && one.object.metadata.annotations?.[MUTATION] === 'ignore')) return one;
  const served = await kinds();
  const sources = new Map<string, ReadonlyObject>();
  for (const substitution of substitutions) {
    const { source, sourceVersion } = substitution;
    const { group, kind } = source;
    const type =
      sourceVersion === undefined
        ? served.byRef(source)
        : served.byVersion(group === '' ? sourceVersion : `${group}/${sourceVersion}`, kind);
    if (type === undefined || type === 'unknown')
      throw new SubstitutionError(`the server has no kind of source object (${refText(source)})`);
    const found = await target.get(type, keyOfRef(source), signal);
    if (found) sources.set(sourceId(substitution), found);
  }
  return { ...one, object: substitute(one.object, substitutions, sources) };
}
