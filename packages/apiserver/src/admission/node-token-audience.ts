/**
 * For whom the tokens are that a node asks for (feature ServiceAccountNodeAudienceRestriction): for who is named by a
 * volume of the Pod, or by the CSI driver of one. For others it takes a right: the verb
 * `request-serviceaccounts-token-audience` on a resource that is called as the audience is.
 */
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { forbidden } from '@coracle/apimachinery/meta/status';
import type { Authorizer } from '../auth/identity.ts';
import { aggregated } from '../auth/union.ts';
import type { ObjectStore } from '../cache/object-store.ts';
import type { AdmissionAttributes } from './plugin.ts';

/** Volume sources of old that a CSI driver serves by now (csi-translation-lib). */
const MIGRATED: ReadonlyMap<string, string> = new Map([
  ['awsElasticBlockStore', 'ebs.csi.aws.com'],
  ['azureDisk', 'disk.csi.azure.com'],
  ['azureFile', 'file.csi.azure.com'],
  ['cinder', 'cinder.csi.openstack.org'],
  ['gcePersistentDisk', 'pd.csi.storage.gke.io'],
  ['portworxVolume', 'pxd.portworx.com'],
  ['vsphereVolume', 'csi.vsphere.vmware.com'],
]);

interface VolumeSource {
  csi?: { driver?: string };
}

interface PodVolume extends VolumeSource {
  projected?: { sources?: { serviceAccountToken?: { audience?: string } }[] };
  persistentVolumeClaim?: { claimName?: string };
  ephemeral?: { volumeClaimTemplate?: { spec?: { volumeName?: string } } };
}

export interface AudienceOptions {
  readonly store: Pick<ObjectStore, 'peek'>;
  readonly authorize: Authorizer;
}

/** Validates the audiences of a TokenRequest that is bound to `pod`. Rejects with ApiError 403. */
export async function checkTokenAudience(
  attributes: AdmissionAttributes,
  pod: Readonly<UnstructuredObject>,
  { store, authorize }: AudienceOptions,
): Promise<void> {
  const { info, name, namespace, user, object } = attributes;
  const audiences = (object as { spec?: { audiences?: string[] | null } }).spec?.audiences ?? [];
  if (audiences.length > 1) throw forbidden(info, name, 'node may only request 0 or 1 audiences');
  const audience = audiences[0] ?? '';
  const { found, problem } = namedByVolumes(pod, audience, store);
  if (problem !== undefined)
    throw forbidden(info, name, `error validating audience ${JSON.stringify(audience)}: ${problem}`);
  if (found) return;
  const decision = await authorize(user, {
    type: 'resource',
    verb: 'request-serviceaccounts-token-audience',
    group: '',
    version: 'v1',
    resource: audience,
    subresource: '',
    namespace,
    name,
  });
  if (decision.allowed) return;
  throw forbidden(
    info,
    name,
    `audience ${JSON.stringify(audience)} not found in pod spec volume, ${user.username} is not authorized to request tokens for this audience`,
  );
}

interface Search {
  readonly found: boolean;
  /** What could not be looked up, where the audience was not found elsewhere. */
  readonly problem?: string | undefined;
}

function namedByVolumes(pod: Readonly<UnstructuredObject>, audience: string, store: AudienceOptions['store']): Search {
  const { volumes = [] } = (pod as { spec?: { volumes?: PodVolume[] } }).spec ?? {};
  const namespace = pod.metadata.namespace ?? '';
  const problems: string[] = [];
  const lookup = (kind: string, prefix: string, key: { namespace: string; name: string }): unknown => {
    const held = store.peek({ prefix, ...key })?.object;
    if (held === undefined) problems.push(`${kind} ${JSON.stringify(key.name)} not found`);
    return held;
  };
  const ofVolume = (name: string | undefined): string | undefined => {
    // A claim that is not bound has no driver yet.
    if (!name) return undefined;
    const volume = lookup('persistentvolume', '/persistentvolumes', { namespace: '', name });
    return driverOf((volume as { spec?: VolumeSource } | undefined)?.spec);
  };
  const driver = (volume: PodVolume): string | undefined => {
    if (volume.ephemeral) return ofVolume(volume.ephemeral.volumeClaimTemplate?.spec?.volumeName);
    if (!volume.persistentVolumeClaim) return driverOf(volume);
    const name = volume.persistentVolumeClaim.claimName ?? '';
    const claim = lookup('persistentvolumeclaim', '/persistentvolumeclaims', { namespace, name });
    return ofVolume((claim as { spec?: { volumeName?: string } } | undefined)?.spec?.volumeName);
  };
  for (const volume of volumes) {
    const named = (source: { serviceAccountToken?: { audience?: string } }): boolean =>
      source.serviceAccountToken !== undefined && (source.serviceAccountToken.audience ?? '') === audience;
    if (volume.projected?.sources?.some(named)) return { found: true };
    const name = driver(volume);
    if (!name) continue;
    const held = lookup('csidriver.storage.k8s.io', 'storage.k8s.io/csidrivers', { namespace: '', name });
    const { tokenRequests = [] } =
      (held as { spec?: { tokenRequests?: { audience?: string }[] } } | undefined)?.spec ?? {};
    if (tokenRequests.some((request) => (request.audience ?? '') === audience)) return { found: true };
  }
  return { found: false, problem: aggregated(problems) };
}

function driverOf(source: VolumeSource | undefined): string | undefined {
  if (source?.csi) return source.csi.driver;
  const kind = Object.keys(source ?? {}).find((key) => MIGRATED.has(key));
  return kind === undefined ? undefined : MIGRATED.get(kind);
}
