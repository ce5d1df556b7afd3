/**
 * NodeRestriction (plugin/pkg/admission/noderestriction): what a node may write is its own Node and Lease, the
 * status of the Pods bound to it, tokens bound to those, and requests of certificates in its own name. The Node
 * authorizer has let the request pass by its kind; here its contents are looked at. Users that are no nodes are none of
 * its business.
 */
import { parseCertificateRequest } from '@coracle/apimachinery/certificates/certificate-request';
import { KUBELET_CLIENT_SIGNER, KUBELET_SERVING_SIGNER } from '@coracle/apimachinery/certificates/kubelet-request';
import { decodeBase64 } from '@coracle/apimachinery/meta/base64';
import { cloneJson } from '@coracle/apimachinery/meta/deep-clone';
import { deepEqual } from '@coracle/apimachinery/meta/deep-equal';
import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import { type ApiError, forbidden, notFound } from '@coracle/apimachinery/meta/status';
import type { Authorizer } from '../auth/identity.ts';
import { nodeIdentity } from '../auth/node-authorizer.ts';
import type { ObjectStore } from '../cache/object-store.ts';
import { nodeNameOf } from '../kinds/builtin/pod-references.ts';
import { checkTokenAudience } from './node-token-audience.ts';
import type { AdmissionAttributes, AdmissionPlugin } from './plugin.ts';

const NODE_LEASES = 'kube-node-lease';
const RESTRICTED_LABELS = 'node-restriction.kubernetes.io';
const PODS = { group: '', resource: 'pods' };

/** kubelet's own labels in the namespaces of Kubernetes (kubelet/pkg/apis/well_known_labels.go). */
const KUBELET_LABELS = new Set([
  'kubernetes.io/hostname',
  'kubernetes.io/os',
  'kubernetes.io/arch',
  'topology.kubernetes.io/zone',
  'topology.kubernetes.io/region',
  'node.kubernetes.io/instance-type',
  'node.kubernetes.io/windows-build',
  'failure-domain.beta.kubernetes.io/zone',
  'failure-domain.beta.kubernetes.io/region',
  'beta.kubernetes.io/instance-type',
  'beta.kubernetes.io/os',
  'beta.kubernetes.io/arch',
]);
const KUBELET_LABEL_NAMESPACES = ['kubelet.kubernetes.io', 'node.kubernetes.io'];

type Store = Pick<ObjectStore, 'peek'>;
interface Context {
  readonly store: Store;
  readonly deny: (why: string) => ApiError;
}
type Check = (node: string, attributes: AdmissionAttributes, context: Context) => void;

/** By `group/resource`. */
const CHECKS: ReadonlyMap<string, Check> = new Map<string, Check>([
  ['/pods', checkPods],
  ['/nodes', checkNode],
  ['/persistentvolumeclaims', checkClaim],
  ['/serviceaccounts', checkTokenRequest],
  ['coordination.k8s.io/leases', checkLease],
  ['certificates.k8s.io/certificatesigningrequests', checkSigningRequest],
]);

/** Group by resource: what `matches` asks at every write. */
const GROUPS: ReadonlyMap<string, string> = new Map(
  [...CHECKS.keys()].map((key) => [key.slice(key.indexOf('/') + 1), key.slice(0, key.indexOf('/'))]),
);

const quoted = (text: string): string => JSON.stringify(text);

/** The plug-in over this store's Pods, Nodes and volumes. */
export function nodeRestriction({ store, authorize }: { store: Store; authorize: Authorizer }): AdmissionPlugin {
  return {
    name: 'NodeRestriction',
    matches: (operation, info) => GROUPS.get(info.resource) === info.group && operation !== 'CONNECT',
    mutate(attributes) {
      const node = nodeIdentity(attributes.user);
      if (node === undefined) return;
      const { info, name, user } = attributes;
      const deny = (why: string): ApiError => forbidden(info, name, why);
      if (node === '') throw deny(`could not determine node from user ${quoted(user.username)}`);
      CHECKS.get(`${info.group}/${info.resource}`)!(node, attributes, { store, deny });
      const pod = boundPod(attributes, store);
      return pod && checkTokenAudience(attributes, pod, authorize);
    },
  };
}

function checkPods(node: string, attributes: AdmissionAttributes, { store, deny }: Context): void {
  const { subresource, operation } = attributes;
  if (subresource === 'status') checkPodStatus(node, attributes, deny);
  else if (subresource === '') {
    if (operation !== 'DELETE')
      throw deny(`unexpected operation ${quoted(operation)}, node ${quoted(node)} can only delete pods`);
    if (nodeNameOf(podOf(attributes, store)) !== node)
      throw deny(`node ${quoted(node)} can only delete pods with spec.nodeName set to itself`);
  } else if (subresource === 'eviction') {
    if (operation !== 'CREATE') throw deny(`unexpected operation ${operation}`);
    if (nodeNameOf(podOf(attributes, store)) !== node)
      throw deny(`node ${node} can only evict pods with spec.nodeName set to itself`);
  } else {
    throw deny(`unexpected pod subresource ${quoted(subresource)}, only 'status' and 'eviction' are allowed`);
  }
}

function podOf({ oldObject, namespace, name, object }: AdmissionAttributes, store: Store) {
  if (oldObject) return oldObject;
  const wanted = name || (object?.metadata.name ?? '');
  const found = store.peek({ prefix: '/pods', namespace, name: wanted });
  if (!found) throw notFound(PODS, wanted);
  return found.object;
}

function checkPodStatus(
  node: string,
  { operation, object, oldObject }: AdmissionAttributes,
  deny: Context['deny'],
): void {
  if (operation !== 'UPDATE') throw deny(`unexpected operation ${quoted(operation)}`);
  if (nodeNameOf(oldObject!) !== node)
    throw deny(`node ${quoted(node)} can only update pod status for pods with spec.nodeName set to itself`);
  if (!deepEqual(object!.metadata.labels ?? {}, oldObject!.metadata.labels ?? {}))
    throw deny(`node ${quoted(node)} cannot update labels through pod status`);
}

interface NodeParts {
  spec?: { configSource?: unknown; taints?: unknown[] };
}

function checkNode(node: string, attributes: AdmissionAttributes, { deny }: Context): void {
  const { operation, object, oldObject } = attributes;
  const requested = attributes.name || (object?.metadata.name ?? '');
  if (requested !== node) throw deny(`node ${quoted(node)} is not allowed to modify node ${quoted(requested)}`);
  if (operation === 'DELETE' || !object) return;
  const { configSource, taints = [] } = (object as NodeParts).spec ?? {};
  const held = oldObject && ((oldObject as NodeParts).spec ?? {});
  if (configSource !== undefined && !(held && deepEqual(configSource, held.configSource)))
    throw deny(
      held
        ? `node ${quoted(node)} is not allowed to update configSource to a new non-nil configSource`
        : `node ${quoted(node)} is not allowed to create pods with a non-nil configSource`,
    );
  if (held && !deepEqual(taints, held.taints ?? [])) throw deny(`node ${quoted(node)} is not allowed to modify taints`);
  // Else a node could have itself collected (CVE-2025-5187) and come back with other labels and taints.
  const owners = object.metadata.ownerReferences ?? [];
  if (oldObject && !deepEqual(owners, oldObject.metadata.ownerReferences ?? []))
    throw deny(`node ${quoted(node)} is not allowed to modify ownerReferences`);
  const changed = changedLabels(object.metadata.labels ?? {}, oldObject?.metadata.labels ?? {});
  const bad = changed.filter(isForbiddenLabel).sort();
  if (bad.length === 0) return;
  throw deny(
    held
      ? `is not allowed to modify labels: ${bad.join(', ')}`
      : `node ${quoted(node)} is not allowed to set the following labels: ${bad.join(', ')}`,
  );
}

const changedLabels = (a: Readonly<Record<string, string>>, b: Readonly<Record<string, string>>): string[] =>
  [...new Set([...Object.keys(a), ...Object.keys(b)])].filter((key) => a[key] !== b[key]);

const isIn = (namespace: string, parent: string): boolean => namespace === parent || namespace.endsWith(`.${parent}`);

function isForbiddenLabel(key: string): boolean {
  const slash = key.indexOf('/');
  const namespace = slash < 0 ? '' : key.slice(0, slash);
  if (isIn(namespace, RESTRICTED_LABELS)) return true;
  if (!isIn(namespace, 'kubernetes.io') && !isIn(namespace, 'k8s.io')) return false;
  return !KUBELET_LABELS.has(key) && !KUBELET_LABEL_NAMESPACES.some((allowed) => isIn(namespace, allowed));
}

function checkClaim(node: string, attributes: AdmissionAttributes, { deny }: Context): void {
  const { subresource, operation, object, oldObject } = attributes;
  if (subresource !== 'status') throw deny('may only update PVC status');
  if (operation !== 'UPDATE') throw deny(`unexpected operation ${quoted(operation)}`);
  if (!deepEqual(withoutCapacity(object!), withoutCapacity(oldObject!)))
    throw deny(`node ${quoted(node)} is not allowed to update fields other than status.capacity and status.conditions`);
}

function withoutCapacity(claim: Readonly<UnstructuredObject>): unknown {
  const { metadata, status, ...rest } = cloneJson(claim) as UnstructuredObject & { status?: Record<string, unknown> };
  const { resourceVersion: _r, managedFields: _m, ...kept } = metadata;
  for (const field of ['capacity', 'conditions', 'allocatedResourceStatuses', 'allocatedResources'])
    delete status?.[field];
  return { ...rest, metadata: kept, status: status ?? {} };
}

interface BoundRef {
  spec?: { boundObjectRef?: { apiVersion?: string; kind?: string; name?: string; uid?: string } };
}

const isTokenRequest = ({ operation, subresource, info }: AdmissionAttributes): boolean =>
  info.resource === 'serviceaccounts' && operation === 'CREATE' && subresource === 'token';

/** The Pod that a token is asked for, once `checkTokenRequest` has found nothing wrong with it; undefined for all else. */
function boundPod(attributes: AdmissionAttributes, store: Store): Readonly<UnstructuredObject> | undefined {
  if (!isTokenRequest(attributes)) return undefined;
  const name = (attributes.object as BoundRef | undefined)?.spec?.boundObjectRef?.name ?? '';
  return store.peek({ prefix: '/pods', namespace: attributes.namespace, name })?.object;
}

/** Tokens a node asks for are bound to a Pod on it. */
function checkTokenRequest(node: string, attributes: AdmissionAttributes, { store, deny }: Context): void {
  if (!isTokenRequest(attributes)) return;
  const { object, namespace } = attributes;
  const ref = (object as BoundRef | undefined)?.spec?.boundObjectRef;
  if (ref?.apiVersion !== 'v1' || ref.kind !== 'Pod' || !ref.name)
    throw deny('node requested token not bound to a pod');
  if (!ref.uid) throw deny('node requested token with a pod binding without a uid');
  const pod = store.peek({ prefix: '/pods', namespace, name: ref.name });
  if (!pod) throw notFound(PODS, ref.name);
  if (pod.object.metadata.uid !== ref.uid)
    throw deny(
      `the UID in the bound object reference (${ref.uid}) does not match the UID in record. The object might have been deleted and then recreated`,
    );
  if (nodeNameOf(pod.object) !== node) throw deny('node requested token bound to a pod scheduled on a different node');
}

function checkLease(node: string, attributes: AdmissionAttributes, { deny }: Context): void {
  if (attributes.namespace !== NODE_LEASES)
    throw deny(`can only access leases in the "${NODE_LEASES}" system namespace`);
  if (ownName(attributes) !== node) throw deny('can only access node lease with the same name as the requesting node');
}

/** Certificates of kubelets are asked for by the node they name. What else is in them the signer validates. */
function checkSigningRequest(node: string, attributes: AdmissionAttributes, { deny }: Context): void {
  if (attributes.operation !== 'CREATE') return;
  const { signerName, request = '' } =
    (attributes.object as { spec?: { signerName?: string; request?: string } }).spec ?? {};
  if (signerName !== KUBELET_SERVING_SIGNER && signerName !== KUBELET_CLIENT_SIGNER) return;
  let commonName: string;
  try {
    ({ commonName } = parseCertificateRequest(new TextDecoder().decode(decodeBase64(request))));
  } catch (error) {
    throw deny(`unable to parse csr: ${(error as Error).message}`);
  }
  if (commonName !== `system:node:${node}`) throw deny(`can only create a node CSR with CN=system:node:${node}`);
}

/** On create the URL has no name. */
const ownName = ({ operation, name, object }: AdmissionAttributes): string =>
  operation === 'CREATE' ? (object?.metadata.name ?? '') : name;
