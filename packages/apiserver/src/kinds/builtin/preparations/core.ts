/** What becomes of objects of the core group beside Pods, between their defaults and their store (pkg/registry/core). */
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { formatTime, type UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { isObject, type JsonObject, listAt, objectAt, textAt, valueAt } from '@coracle/apimachinery/types/read-value';
import { keepStatus } from '@coracle/apimachinery/types/strategy';

type MutableObject = Record<string, unknown>;

interface About {
  readonly now: number;
}

const finalizersOf = (namespace: JsonObject): readonly unknown[] => listAt(namespace, 'spec', 'finalizers');

/** Whatever else has to end first, the namespace controller is among it. */
export function prepareNewNamespace(namespace: MutableObject): void {
  const finalizers = finalizersOf(namespace);
  if (finalizers.includes('kubernetes')) return;
  namespace['spec'] = { ...objectAt(namespace, 'spec'), finalizers: [...finalizers, 'kubernetes'] };
}

/** Only `/finalize` writes the finalizers of a namespace's own. */
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

/** Kubelets have not been configured through the API since 1.24. */
export function dropConfiguration(node: MutableObject, old?: JsonObject): void {
  for (const [part, field] of [
    ['spec', 'configSource'],
    ['status', 'config'],
  ] as const) {
    if (valueAt(node, part, field) === undefined || valueAt(old, part, field) !== undefined) continue;
    const { [field]: _, ...kept } = objectAt(node, part);
    node[part] = kept;
  }
}

/** Of the secrets of an account only the names: they are those of its namespace. */
export function nameSecrets(account: MutableObject): void {
  if (!Array.isArray(account['secrets'])) return;
  account['secrets'] = account['secrets'].map((secret) => {
    const name = textAt(secret, 'name');
    return name === '' ? {} : { name };
  });
}

/** A PersistentVolume says when it came to its phase. */
export function prepareNewVolume(volume: MutableObject, { now }: About): void {
  volume['status'] = { ...objectAt(volume, 'status'), lastPhaseTransitionTime: formatTime(now) };
}

export function prepareVolumeStatus(volume: MutableObject, old: JsonObject, { now }: About): void {
  if (textAt(volume, 'status', 'phase') === textAt(old, 'status', 'phase')) return;
  const sent = valueAt(volume, 'status', 'lastPhaseTransitionTime');
  const isOwn = sent !== undefined && sent !== null && sent !== valueAt(old, 'status', 'lastPhaseTransitionTime');
  if (!isOwn) volume['status'] = { ...objectAt(volume, 'status'), lastPhaseTransitionTime: formatTime(now) };
}

/** Where the contents of a claim come from is said in two fields, an old and a new one (KEP 1495). */
export function prepareNewClaim(claim: MutableObject): void {
  if (isObject(claim['spec'])) claim['spec'] = alike(known(claim['spec'], {}));
}

export function prepareClaim(claim: MutableObject, old: JsonObject): void {
  const { spec } = claim;
  if (!isObject(spec)) return;
  const before = objectAt(old, 'spec');
  const next = known(spec, before);
  // A claim that was stored with one of the fields stays as it is: its spec does not change.
  const isHalf = isObject(before['dataSource']) !== isObject(before['dataSourceRef']);
  claim['spec'] = isHalf && deepEqual(sourcesOf(next), sourcesOf(before)) ? next : alike(next);
}

const sourcesOf = ({ dataSource, dataSourceRef }: JsonObject): unknown[] => [dataSource ?? null, dataSourceRef ?? null];

/** Without what is not heard: sources in other namespaces, and in the old field what is neither claim nor snapshot. */
function known(spec: JsonObject, before: JsonObject): JsonObject {
  const next: MutableObject = { ...spec };
  const hadRef = isObject(before['dataSourceRef']);
  if (!hadRef && textAt(spec, 'dataSourceRef', 'namespace') !== '') delete next['dataSourceRef'];
  const hadSource = hadRef || isObject(before['dataSource']);
  if (!hadSource && !isObject(next['dataSourceRef']) && !isClaimOrSnapshot(next['dataSource'])) {
    delete next['dataSource'];
  }
  return next;
}

function isClaimOrSnapshot(source: unknown): boolean {
  const [kind, group] = [textAt(source, 'kind'), textAt(source, 'apiGroup')];
  return (
    (kind === 'PersistentVolumeClaim' && group === '') ||
    (kind === 'VolumeSnapshot' && group === 'snapshot.storage.k8s.io')
  );
}

/** The field that is missing says what the other one says. */
function alike(spec: JsonObject): JsonObject {
  const { dataSource, dataSourceRef } = spec;
  if (isObject(dataSource) && !isObject(dataSourceRef)) return { ...spec, dataSourceRef: pointer(dataSource) };
  if (isObject(dataSourceRef) && !isObject(dataSource) && textAt(dataSourceRef, 'namespace') === '') {
    return { ...spec, dataSource: pointer(dataSourceRef) };
  }
  return spec;
}

const pointer = ({ apiGroup, kind, name }: JsonObject): JsonObject => ({ apiGroup: apiGroup ?? null, kind, name });
