/**
 * ServiceAccount: every Pod runs as one of its namespace's accounts and, unless it does not want to, gets that account's
 * token mounted (plugin/pkg/admission/serviceaccount).
 */

import { generateName } from '@coracle/apimachinery/meta/generate-name';
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { isJsonObject } from '@coracle/apimachinery/meta/own-property';
import { forbidden } from '@coracle/apimachinery/meta/status';
import type * as types from '@coracle/apimachinery/types/types';
import type { Clock } from '@coracle/runtime/clock/clock';
import { abortable } from '@coracle/runtime/signal/abortable';
import type { ObjectStore, StoredObject } from '../cache/object-store.ts';
import type { AdmissionAttributes, AdmissionPlugin } from './plugin.ts';

const ACCOUNTS_PREFIX = '/serviceaccounts';
const PODS = { group: '', resource: 'pods' };
const MOUNT_PATH = '/var/run/secrets/kubernetes.io/serviceaccount';
/** Of the one lifetime that is renewed well before its end. */
const TOKEN_SECONDS = 3607;
/** A new namespace gets its `default` account a moment after it was made: a Pod that comes first waits this long. */
const DEFAULT_ACCOUNT_WAIT_MS = 2000;

type PodSpec = Partial<types.PodSpec>;

/** The plug-in over this store's accounts. */
export function serviceAccount(store: Pick<ObjectStore, 'peek' | 'watch' | 'revision'>, clock: Clock): AdmissionPlugin {
  const find = (namespace: string, name: string): StoredObject | undefined =>
    store.peek({ prefix: ACCOUNTS_PREFIX, namespace, name });

  return {
    name: 'ServiceAccount',
    matches: (operation, info, subresource) =>
      operation === 'CREATE' && info.resource === 'pods' && info.group === '' && subresource === '',
    mutate(attributes) {
      const pod = attributes.object!;
      if (!isJsonObject(pod['spec'])) return;
      const spec = pod['spec'] as PodSpec;
      spec.serviceAccountName ||= spec.serviceAccount || 'default';
      const name = spec.serviceAccountName;
      const found = find(attributes.namespace, name);
      if (found) return useAccount(spec, found.object);
      if (name !== 'default') throw unknownAccount(attributes, name);
      return appearance(store, clock, { attributes, name }).then((account) => useAccount(spec, account));
    },
    validate(attributes) {
      const spec = attributes.object!['spec'] as PodSpec | undefined;
      const name = spec?.serviceAccountName ?? '';
      if (name !== '' && !find(attributes.namespace, name)) throw unknownAccount(attributes, name);
    },
  };
}

const unknownAccount = ({ namespace, name }: AdmissionAttributes, account: string): Error =>
  forbidden(
    PODS,
    name,
    `error looking up service account ${namespace}/${account}: serviceaccount ${JSON.stringify(account)} not found`,
  );

/** Waits for an account that a controller is about to make. Throws ApiError 403 when it does not come. */
async function appearance(
  store: Pick<ObjectStore, 'peek' | 'watch' | 'revision'>,
  clock: Clock,
  { attributes, name }: { readonly attributes: AdmissionAttributes; readonly name: string },
): Promise<Readonly<UnstructuredObject>> {
  const { namespace, signal } = attributes;
  const { promise, resolve, reject } = Promise.withResolvers<Readonly<UnstructuredObject>>();
  const watch = store.watch(ACCOUNTS_PREFIX, store.revision(), (changes) => {
    const found = changes.find(
      ({ type, current }) => type !== 'DELETED' && current.namespace === namespace && current.name === name,
    );
    if (found) resolve(found.current.object);
  });
  const cancel = clock.schedule(DEFAULT_ACCOUNT_WAIT_MS, () => {
    const late = store.peek({ prefix: ACCOUNTS_PREFIX, namespace, name });
    if (late) resolve(late.object);
    else reject(unknownAccount(attributes, name));
  });
  try {
    return await abortable(promise, signal);
  } finally {
    watch.stop();
    cancel();
  }
}

function useAccount(spec: PodSpec, account: Readonly<UnstructuredObject>): void {
  const automount = spec.automountServiceAccountToken ?? account['automountServiceAccountToken'] ?? true;
  if (automount !== false) mountToken(spec);
  const secrets = account['imagePullSecrets'] as { name?: string }[] | undefined;
  if ((spec.imagePullSecrets ?? []).length === 0 && secrets && secrets.length > 0) {
    spec.imagePullSecrets = secrets.map((secret) => ({ ...secret }));
  }
}

/** Adds the token's volume and mounts it where no container has something else there already. */
function mountToken(spec: PodSpec): void {
  const volumes = spec.volumes ?? [];
  const known = volumes.find((volume) => volume.name.startsWith('kube-api-access-'));
  const name = known?.name ?? generateName('kube-api-access-');
  let mounted = false;
  for (const container of [...(spec.initContainers ?? []), ...(spec.containers ?? [])]) {
    if (container.volumeMounts?.some((mount) => mount.mountPath === MOUNT_PATH)) continue;
    container.volumeMounts = [...(container.volumeMounts ?? []), { name, readOnly: true, mountPath: MOUNT_PATH }];
    mounted = true;
  }
  if (mounted && !known) spec.volumes = [...volumes, tokenVolume(name)];
}

const tokenVolume = (name: string) => ({
  name,
  projected: {
    defaultMode: 420,
    sources: [
      { serviceAccountToken: { expirationSeconds: TOKEN_SECONDS, path: 'token' } },
      { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
      {
        downwardAPI: {
          items: [{ path: 'namespace', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.namespace' } }],
        },
      },
    ],
  },
});
