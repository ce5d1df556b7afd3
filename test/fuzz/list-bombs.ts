/** Lists and maps of built-in and KubeVirt kinds with very many items in them, wrong ones and right ones. */
import { at, type Body, dry, json, MERGE, pod, repeated } from './body.ts';

/** An object of this kind, and where it is sent. */
const one = (name: string, { api, resource, kind }: Place, rest: string): Body =>
  at(
    name,
    `${api === 'v1' ? '/api/v1' : `/apis/${api}`}${resource}`,
    `{"apiVersion":"${api}","kind":"${kind}","metadata":{"name":"bomb"},${rest}}`,
  );

interface Place {
  readonly api: string;
  /** With the namespace before it, where there is one. */
  readonly resource: string;
  readonly kind: string;
}

const core = (kind: string, plural: string): Place => ({ api: 'v1', resource: `/namespaces/default/${plural}`, kind });
const QUOTA = core('ResourceQuota', 'resourcequotas');
const INSTANCE: Place = {
  api: 'kubevirt.io/v1',
  resource: '/namespaces/default/virtualmachineinstances',
  kind: 'VirtualMachineInstance',
};
const PODS = '/api/v1/namespaces/default/pods';
const CONTAINER = '"containers":[{"name":"c","image":"a"}]';
const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';

export function listBombs(): Body[] {
  return [
    one('a quota of many amounts', QUOTA, `"spec":{"hard":{${repeated(70_000, (i) => `"k${i}":"0.1m"`)}}}`),
    one(
      'a quota whose scopes say nothing of its resources',
      QUOTA,
      `"spec":{"hard":{${repeated(40_000, (i) => `"hugepages-${i}":"1"`)}},"scopes":[${repeated(40_000, () => '"BestEffort"')}]}`,
    ),
    one(
      'many access modes',
      core('PersistentVolumeClaim', 'persistentvolumeclaims'),
      `"spec":{"accessModes":[${repeated(150_000, (i) => `"n${i}"`)}]}`,
    ),
    one(
      'many numbers for access modes',
      core('PersistentVolumeClaim', 'persistentvolumeclaims'),
      `"spec":{"accessModes":[${repeated(600_000, () => '1')}]}`,
    ),
    one(
      'many texts of a Secret',
      core('Secret', 'secrets'),
      `"stringData":{${repeated(60_000, (i) => `"k${i}":"v"`)}}`,
    ),
    at(
      'labels of a Binding',
      '/api/v1/namespaces/default/bindings',
      `{"apiVersion":"v1","kind":"Binding","metadata":{"name":"bomb","labels":{${repeated(150_000, (i) => `"k${i}":"v"`)}}},"target":{}}`,
    ),
    one(
      'many usages of a certificate',
      { api: 'certificates.k8s.io/v1', resource: '/certificatesigningrequests', kind: 'CertificateSigningRequest' },
      `"spec":{"request":"QUFB","signerName":"a.b/c","usages":[${repeated(80_000, (i) => (i < 40_000 ? `"n${i}"` : '"any"'))}]}`,
    ),
    one(
      'many paths of an Ingress',
      { api: 'networking.k8s.io/v1', resource: '/namespaces/default/ingresses', kind: 'Ingress' },
      `"spec":{"rules":[{"http":{"paths":[${repeated(60_000, () => '{"pathType":"Exact","path":"a//b","backend":{}}')}]}}]}`,
    ),
    one(
      'many peers of a policy',
      { api: 'networking.k8s.io/v1', resource: '/namespaces/default/networkpolicies', kind: 'NetworkPolicy' },
      `"spec":{"ingress":[{"from":[${repeated(30_000, () => '{"ipBlock":{"cidr":"FE80::1/64"}}')}]}]}`,
    ),
    one(
      'many claims of a StatefulSet',
      { api: 'apps/v1', resource: '/namespaces/default/statefulsets', kind: 'StatefulSet' },
      `"spec":{"serviceName":"a","template":{},"volumeClaimTemplates":[${repeated(100_000, () => '{}')}]}`,
    ),
    at(
      'many gates of a Pod',
      PODS,
      pod(`${CONTAINER},"schedulingGates":[${repeated(80_000, (i) => `{"name":" ${i}"}`)}]`),
    ),
    one(
      'many conditions of a webhook',
      {
        api: 'admissionregistration.k8s.io/v1',
        resource: '/validatingwebhookconfigurations',
        kind: 'ValidatingWebhookConfiguration',
      },
      `"webhooks":[{"name":"a.b.c","matchConditions":[${repeated(2_000, (i) => `{"name":"n${i}","expression":"object.a == ${i}"}`)}]}]`,
    ),
    one(
      'many expressions of a machine instance',
      INSTANCE,
      `"spec":{"domain":{"devices":{}},"affinity":{"nodeAffinity":{"${REQUIRED}":{"nodeSelectorTerms":[{"matchExpressions":[${repeated(30_000, () => '{"key":" ","operator":"X"}')}]}]}}}}`,
    ),
    one(
      'many servers of a machine instance',
      INSTANCE,
      `"spec":{"domain":{"devices":{"interfaces":[{"name":"n","masquerade":{},"dhcpOptions":{"ntpServers":[${repeated(80_000, (i) => `"n${i}"`)}]}}]}},"networks":[{"name":"n","pod":{}}]}`,
    ),
    {
      ...json('a change of a Pod of many tolerations', '{"metadata":{"labels":{"a":"b"}}}', MERGE),
      target: dry(`${PODS}/tolerant`),
    },
  ];
}

/** Each of them is looked for among those that are there, when the Pod changes. */
export const tolerant = (): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'tolerant' },
  spec: {
    containers: [{ name: 'c', image: 'a' }],
    tolerations: Array.from({ length: 15_000 }, (_, i) => ({ key: `k${i}`, operator: 'Exists' })),
  },
});
