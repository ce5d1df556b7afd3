/** Where the contents of a claim come from is said in two fields, an old and a new one (KEP 1495). */
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import { isObject, type JsonObject, objectAt, textAt } from '@coracle/apimachinery/types/read-value';

export function prepareNewClaim(claim: Record<string, unknown>): void {
  if (isObject(claim['spec'])) claim['spec'] = alike(known(claim['spec'], {}));
}

export function prepareClaim(claim: Record<string, unknown>, old: JsonObject): void {
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
  const next: Record<string, unknown> = { ...spec };
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
