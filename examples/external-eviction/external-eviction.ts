/** Tears down machines with `evictionStrategy: External` the way a Cluster API provider does. See README.md. */
import {
  ApiException,
  CoreV1Api,
  CustomObjectsApi,
  KubeConfig,
  type KubernetesObject,
  makeInformer,
  PatchStrategy,
  setHeaderOptions,
} from '@kubernetes/client-node';

interface Instance extends KubernetesObject {
  spec?: { evictionStrategy?: string };
  status?: { phase?: string; evacuationNodeName?: string };
}

const VMIS = { group: 'kubevirt.io', version: 'v1', plural: 'virtualmachineinstances' };
const GRACE = 'example.coracle.dev/vmi-deletion-grace-time';
const CORDONED = 'example.coracle.dev/cordoned-by-external-eviction';
const GRACE_MS = Number(process.env['GRACE_SECONDS'] ?? 600) * 1000;
const RETRY_MS = 1000;
const merge = setHeaderOptions('Content-Type', PatchStrategy.MergePatch);

const infra = new KubeConfig();
infra.loadFromDefault();
const tenant = new KubeConfig();
const tenantFile = process.env['TENANT_KUBECONFIG'];
if (tenantFile) tenant.loadFromFile(tenantFile);
else tenant.loadFromDefault();
const vmis = infra.makeApiClient(CustomObjectsApi);
const work = tenant.makeApiClient(CoreV1Api);

const has = (error: unknown, code: number): boolean => error instanceof ApiException && error.code === code;
const say = (name: string, text: string): void => console.log(`${new Date().toISOString()} ${name}: ${text}`);

/** True when the tenant's node holds nothing any more, or does not exist. */
async function drained(nodeName: string): Promise<boolean> {
  try {
    const node = await work.readNode({ name: nodeName });
    if (!node.spec?.unschedulable) {
      // The mark tells our own cordon from an administrator's, which is not ours to undo.
      const body = { metadata: { annotations: { [CORDONED]: 'true' } }, spec: { unschedulable: true } };
      await work.patchNode({ name: nodeName, body }, merge);
      say(nodeName, 'cordoned');
    }
  } catch (error) {
    if (has(error, 404)) return true;
    throw error;
  }
  const { items } = await work.listPodForAllNamespaces({ fieldSelector: `spec.nodeName=${nodeName}` });
  const left = items.filter(
    ({ metadata, status }) =>
      status?.phase !== 'Succeeded' &&
      status?.phase !== 'Failed' &&
      !metadata?.ownerReferences?.some(({ kind }) => kind === 'DaemonSet') &&
      !metadata?.annotations?.['kubernetes.io/config.mirror'],
  );
  for (const { metadata } of left.filter((pod) => !pod.metadata?.deletionTimestamp)) {
    const { name = '', namespace = '' } = metadata ?? {};
    try {
      await work.createNamespacedPodEviction({ name, namespace, body: { metadata: { name, namespace } } });
    } catch (error) {
      // 429: a budget of the tenant's holds it; the next round asks again.
      if (!has(error, 429) && !has(error, 404)) throw error;
    }
  }
  return left.length === 0;
}

async function uncordon(nodeName: string): Promise<void> {
  try {
    const node = await work.readNode({ name: nodeName });
    if (node.metadata?.annotations?.[CORDONED] !== 'true') return;
    const body = { metadata: { annotations: { [CORDONED]: null } }, spec: { unschedulable: null } };
    await work.patchNode({ name: nodeName, body }, merge);
    say(nodeName, 'uncordoned');
  } catch (error) {
    if (!has(error, 404)) throw error;
  }
}

/** One look at one instance. True when it must be looked at again soon. */
async function reconcile({ metadata, spec, status }: Instance): Promise<boolean> {
  const { name = '', namespace = '', deletionTimestamp, annotations } = metadata ?? {};
  if (spec?.evictionStrategy !== 'External' || deletionTimestamp) return false;
  if (!status?.evacuationNodeName) {
    if (status?.phase === 'Running') await uncordon(name);
    return false;
  }
  let until = Date.parse(annotations?.[GRACE] ?? '');
  if (Number.isNaN(until)) {
    until = Date.now() + GRACE_MS;
    const body = { metadata: { annotations: { [GRACE]: new Date(until).toISOString() } } };
    await vmis.patchNamespacedCustomObject({ ...VMIS, namespace, name, body }, merge);
    say(name, `must leave ${status.evacuationNodeName}; waits until ${new Date(until).toISOString()} at most`);
  }
  if (Date.now() < until && !(await drained(name))) return true;
  await vmis.deleteNamespacedCustomObject({ ...VMIS, namespace, name, propagationPolicy: 'Foreground' });
  say(name, 'deleted');
  return false;
}

const informer = makeInformer<Instance>(infra, '/apis/kubevirt.io/v1/virtualmachineinstances', async () =>
  vmis.listCustomObjectForAllNamespaces({ ...VMIS, resourcePlural: VMIS.plural }),
);
/** Instances that are looked at, or will be; one look at a time for each. */
const busy = new Set<string>();
/** Instances that changed while they were looked at: what was seen then may be old. */
const changed = new Set<string>();
async function look(key: string): Promise<void> {
  changed.add(key);
  if (busy.has(key)) return;
  busy.add(key);
  for (;;) {
    changed.delete(key);
    const [namespace = '', name = ''] = key.split('/');
    const instance = informer.get(name, namespace);
    const again = instance
      ? await reconcile(instance).catch((error: Error) => {
          if (!has(error, 404)) say(name, error.message);
          return true;
        })
      : false;
    if (changed.has(key)) continue;
    if (!again) break;
    await new Promise((wake) => setTimeout(wake, RETRY_MS));
  }
  busy.delete(key);
}
const seen = ({ metadata }: Instance): void => void look(`${metadata?.namespace}/${metadata?.name}`);
informer.on('add', seen);
informer.on('update', seen);
informer.on('error', (error) => {
  console.error(`watch ended: ${error?.message ?? error}`);
  setTimeout(() => void informer.start(), RETRY_MS);
});
informer.on('connect', () => console.log('watching'));
await informer.start();
