/** How a CustomResourceDefinition is written and deleted, beside its validation (registry/customresourcedefinition). */
import { formatTime } from '@coracle/apimachinery/meta/object';
import { isJsonObject, type JsonObject } from '@coracle/apimachinery/meta/own-property';
import { CLEANUP_FINALIZER, type CrdCondition, withCondition } from './crd.ts';

const text = (value: unknown): string => (typeof value === 'string' ? value : '');

/** Names follow the kind, conversion is None, and the storage version counts as stored from the moment it is named. */
export function setCrdDefaults(object: Record<string, unknown>): void {
  if (object['spec'] === undefined || object['spec'] === null) object['spec'] = {};
  const { spec } = object;
  if (!isJsonObject(spec)) return;
  for (const version of Array.isArray(spec['versions']) ? spec['versions'].filter(isJsonObject) : []) {
    for (const flag of ['served', 'storage']) version[flag] ??= false;
  }
  const { names } = spec;
  if (isJsonObject(names) && text(names['kind']) !== '') {
    if (text(names['singular']) === '') names['singular'] = text(names['kind']).toLowerCase();
    if (text(names['listKind']) === '') names['listKind'] = `${text(names['kind'])}List`;
  }
  if (spec['conversion'] === undefined || spec['conversion'] === null) spec['conversion'] = { strategy: 'None' };
  const webhook = isJsonObject(spec['conversion']) ? spec['conversion']['webhook'] : undefined;
  const config = isJsonObject(webhook) ? webhook['clientConfig'] : undefined;
  const service = isJsonObject(config) ? config['service'] : undefined;
  if (isJsonObject(service) && service['port'] === undefined) service['port'] = 443;
  // Its zero value is its default, and Go leaves it out.
  if (spec['preserveUnknownFields'] === false) delete spec['preserveUnknownFields'];
  noteStorageVersion(object, spec);
}

function noteStorageVersion(object: Record<string, unknown>, spec: JsonObject): void {
  const versions = Array.isArray(spec['versions']) ? spec['versions'].filter(isJsonObject) : [];
  const storage = text(versions.find((version) => version['storage'] === true)?.['name']);
  const status = isJsonObject(object['status']) ? object['status'] : {};
  const stored = Array.isArray(status['storedVersions']) ? status['storedVersions'] : [];
  if (status['acceptedNames'] === undefined) status['acceptedNames'] = { plural: '', kind: '' };
  if (storage !== '' && !stored.includes(storage)) status['storedVersions'] = [...stored, storage];
  object['status'] = status;
}

/** What the first DELETE of a definition puts on it (changed in place): its objects have to go first. */
export function markCrdDeleted(object: Record<string, unknown>, now: number): void {
  const metadata = object['metadata'] as { finalizers?: string[] };
  const finalizers = metadata.finalizers ?? [];
  if (!finalizers.includes(CLEANUP_FINALIZER)) metadata.finalizers = [...finalizers, CLEANUP_FINALIZER];
  const status = (isJsonObject(object['status']) ? object['status'] : {}) as { conditions?: CrdCondition[] };
  const conditions = withCondition(
    status.conditions ?? [],
    {
      type: 'Terminating',
      status: 'True',
      reason: 'InstanceDeletionPending',
      message: 'CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon',
    },
    formatTime(now),
  );
  object['status'] = { ...status, conditions };
}
