/**
 * Which objects the Pods of a node refer to (plugin/pkg/auth/authorizer/node/graph.go). Kept by counting references as
 * Pods are bound and go, so that a question costs a look-up; volumes behind claims are followed when asked.
 */
import type { UnstructuredObject } from '../../api/meta/object.ts';
import type { ObjectStore } from '../cache/object-store.ts';
import { nodeNameOf, podReferences } from './pod-references.ts';

export type ReferredResource =
  | 'secrets'
  | 'configmaps'
  | 'persistentvolumeclaims'
  | 'serviceaccounts'
  | 'resourceclaims';
const REFERRED: readonly ReferredResource[] = [
  'secrets',
  'configmaps',
  'persistentvolumeclaims',
  'serviceaccounts',
  'resourceclaims',
];

export interface NodeGraph {
  /** Whether a Pod bound to the node refers to the object, a Secret also through the volume of a claim. */
  refers(node: string, resource: ReferredResource, namespace: string, name: string): boolean;
  runsPod(node: string, namespace: string, name: string): boolean;
  /** Whether the volume is bound to a claim that a Pod of the node uses. */
  usesVolume(node: string, name: string): boolean;
  stop(): void;
}

const PODS = '/pods';
const CLAIMS = '/persistentvolumeclaims';
const VOLUMES = '/persistentvolumes';
const MIRROR = 'kubernetes.io/config.mirror';

interface ClaimRef {
  namespace?: string;
  name?: string;
}
type SecretRef = ClaimRef | undefined;

interface VolumeSpec extends Record<string, unknown> {
  claimRef?: ClaimRef;
}

type References = Map<string, number>;

/** Starts a graph on the store's Pods. */
export function createNodeGraph(store: Pick<ObjectStore, 'get' | 'list' | 'watch' | 'revision'>): NodeGraph {
  /** By node: how many of its Pods refer to `resource\nnamespace/name`. */
  const nodes = new Map<string, References>();
  const revision = store.revision();
  const change = (pod: Readonly<UnstructuredObject>, by: 1 | -1): void => {
    const node = nodeNameOf(pod);
    // A node could make mirror Pods that refer to what it wants to read.
    if (node === '' || pod.metadata.annotations?.[MIRROR] !== undefined) return;
    const held = nodes.get(node) ?? new Map<string, number>();
    nodes.set(node, held);
    const refs = podReferences(pod);
    for (const resource of REFERRED) {
      for (const name of refs[resource]) {
        const key = `${resource}\n${pod.metadata.namespace}/${name}`;
        const count = (held.get(key) ?? 0) + by;
        if (count > 0) held.set(key, count);
        else held.delete(key);
      }
    }
    if (held.size === 0) nodes.delete(node);
  };
  for (const { object } of store.list(PODS, { revision }).items) change(object, 1);
  const watch = store.watch(PODS, revision, (changes) => {
    for (const { type, current, previous } of changes) {
      if (previous) change(previous.object, -1);
      if (type !== 'DELETED') change(current.object, 1);
    }
  });

  const direct = (node: string, resource: ReferredResource, key: string): boolean =>
    nodes.get(node)?.has(`${resource}\n${key}`) ?? false;
  const volumeOf = (name: string): VolumeSpec | undefined =>
    store.get({ prefix: VOLUMES, namespace: '', name })?.object['spec'] as VolumeSpec | undefined;

  /** Secrets that mounting a volume takes live in its claim's namespace or in one the volume names. */
  const throughVolume = (node: string, namespace: string, name: string): boolean => {
    for (const key of nodes.get(node)?.keys() ?? []) {
      if (!key.startsWith('persistentvolumeclaims\n')) continue;
      const [claimNamespace = '', claimName = ''] = key.slice('persistentvolumeclaims\n'.length).split('/');
      const claim = store.get({ prefix: CLAIMS, namespace: claimNamespace, name: claimName });
      const volumeName = (claim?.object['spec'] as { volumeName?: string } | undefined)?.volumeName;
      const volume = volumeName ? volumeOf(volumeName) : undefined;
      if (volume && volumeSecrets(volume).some((ref) => ref.namespace === namespace && ref.name === name)) return true;
    }
    return false;
  };

  return {
    refers: (node, resource, namespace, name) =>
      direct(node, resource, `${namespace}/${name}`) ||
      (resource === 'secrets' && throughVolume(node, namespace, name)),
    runsPod(node, namespace, name) {
      const pod = store.get({ prefix: PODS, namespace, name });
      return pod !== undefined && nodeNameOf(pod.object) === node;
    },
    usesVolume(node, name) {
      const claim = volumeOf(name)?.claimRef;
      return claim !== undefined && direct(node, 'persistentvolumeclaims', `${claim.namespace}/${claim.name}`);
    },
    stop: () => watch.stop(),
  };
}

/** Secrets a kubelet needs to mount the volume (VisitPVSecretNames, those visible to kubelets). */
function volumeSecrets(spec: VolumeSpec): { namespace: string; name: string }[] {
  const claimNamespace = spec.claimRef?.namespace ?? '';
  const azure = spec['azureFile'] as { secretName?: string; secretNamespace?: string } | undefined;
  const csi = spec['csi'] as Record<string, SecretRef> | undefined;
  const refs: SecretRef[] = [
    azure?.secretName ? { name: azure.secretName, namespace: azure.secretNamespace ?? claimNamespace } : undefined,
    csi?.['nodePublishSecretRef'],
    csi?.['nodeStageSecretRef'],
    csi?.['nodeExpandSecretRef'],
    ...['cephfs', 'cinder', 'flexVolume', 'rbd', 'scaleIO', 'iscsi', 'storageos'].map(
      (source) => (spec[source] as { secretRef?: ClaimRef } | undefined)?.secretRef,
    ),
  ];
  return refs.flatMap((ref) => (ref?.name ? [{ namespace: ref.namespace || claimNamespace, name: ref.name }] : []));
}
