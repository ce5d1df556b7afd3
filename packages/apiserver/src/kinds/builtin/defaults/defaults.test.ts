import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseApiVersion } from '../../../../../apimachinery/src/meta/gvk.ts';
import { builtinResource, builtinResources } from '../builtin-resources.ts';
import { imageTag } from './pod-spec.ts';

/** The object as it is after defaulting. */
function defaulted(apiVersion: string, resource: string, object: Record<string, unknown>): Record<string, unknown> {
  const info = builtinResource({ ...parseApiVersion(apiVersion), resource }) ?? assert.fail(resource);
  const copy = structuredClone({ apiVersion, ...object });
  info.strategy.setDefaults?.(copy);
  return copy;
}

const at = (object: unknown, path: string): unknown =>
  path.split('.').reduce<unknown>((value, step) => (value as Record<string, unknown> | undefined)?.[step], object);

const podSpec = { containers: [{ name: 'a', image: 'nginx' }] };

// Compat Admission and quota, P0, yes: defaults of the built-in kinds
test('a Pod gets every default that clients see', () => {
  const pod = defaulted('v1', 'pods', {
    spec: {
      serviceAccountName: 'sa',
      volumes: [{ name: 'v', secret: { secretName: 's' } }, { name: 'w' }],
      containers: [
        {
          name: 'a',
          image: 'nginx:1.27',
          ports: [{ containerPort: 80 }],
          resources: { limits: { cpu: 2, memory: '1024Mi' }, requests: { cpu: '0.5' } },
          livenessProbe: { httpGet: { port: 80 } },
          env: [{ name: 'N', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }],
        },
      ],
    },
  });
  assert.deepEqual(pod, {
    apiVersion: 'v1',
    spec: {
      serviceAccountName: 'sa',
      serviceAccount: 'sa',
      volumes: [
        { name: 'v', secret: { secretName: 's', defaultMode: 420 } },
        { name: 'w', emptyDir: {} },
      ],
      containers: [
        {
          name: 'a',
          image: 'nginx:1.27',
          ports: [{ containerPort: 80, protocol: 'TCP' }],
          resources: { limits: { cpu: '2', memory: '1Gi' }, requests: { cpu: '500m', memory: '1Gi' } },
          livenessProbe: {
            httpGet: { port: 80, path: '/', scheme: 'HTTP' },
            timeoutSeconds: 1,
            periodSeconds: 10,
            successThreshold: 1,
            failureThreshold: 3,
          },
          env: [{ name: 'N', valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.name' } } }],
          imagePullPolicy: 'IfNotPresent',
          terminationMessagePath: '/dev/termination-log',
          terminationMessagePolicy: 'File',
        },
      ],
      restartPolicy: 'Always',
      dnsPolicy: 'ClusterFirst',
      schedulerName: 'default-scheduler',
      terminationGracePeriodSeconds: 30,
      securityContext: {},
      enableServiceLinks: true,
    },
    status: { phase: 'Pending', qosClass: 'Burstable' },
  });
});

test('one value of each other kind', () => {
  const template = { spec: podSpec };
  const labelled = (labels: object) => ({ metadata: { labels }, spec: podSpec });
  const OF_JOB = { 'batch.kubernetes.io/controller-uid': 'u' };
  const POD_SPEC = 'spec.template.spec';
  const ROLLING = 'RollingUpdate';
  const sharing = { hostNetwork: true, containers: [{ name: 'c', ports: [{ containerPort: 80 }] }] };
  const cases: [string, string, Record<string, unknown>, string, unknown][] = [
    ['v1', 'pods', { spec: podSpec }, 'status.qosClass', 'BestEffort'],
    [
      'v1',
      'pods',
      { spec: { containers: [{ resources: { limits: { cpu: '1', memory: '1' } } }] } },
      'status.qosClass',
      'Guaranteed',
    ],
    ['v1', 'services', { spec: { ports: [{ port: 80 }] } }, 'spec.ports.0.targetPort', 80],
    ['v1', 'services', { spec: { type: 'NodePort' } }, 'spec.externalTrafficPolicy', 'Cluster'],
    ['v1', 'services', { spec: { type: 'ExternalName' } }, 'spec.ipFamilies', undefined],
    ['v1', 'services', { spec: { clusterIP: 'None' } }, 'spec.clusterIPs', ['None']],
    ['v1', 'namespaces', { metadata: { name: 'n' } }, 'metadata.labels', { 'kubernetes.io/metadata.name': 'n' }],
    ['v1', 'namespaces', { metadata: { name: 'n' } }, 'spec.finalizers', ['kubernetes']],
    ['v1', 'namespaces', { metadata: { name: 'n', deletionTimestamp: 'x' }, spec: {} }, 'spec.finalizers', undefined],
    ['v1', 'secrets', { stringData: { k: 'hé' }, data: { k: 'b2xk', o: 'eA==' } }, 'data', { k: 'aMOp', o: 'eA==' }],
    ['v1', 'secrets', { stringData: { k: 'v' } }, 'stringData', undefined],
    ['v1', 'secrets', {}, 'type', 'Opaque'],
    [
      'v1',
      'persistentvolumeclaims',
      { spec: { resources: { requests: { storage: '2048Mi' } } } },
      'spec.resources.requests.storage',
      '2Gi',
    ],
    ['v1', 'persistentvolumes', {}, 'spec.persistentVolumeReclaimPolicy', 'Retain'],
    ['v1', 'persistentvolumes', { spec: { hostPath: { path: '/x' } } }, 'spec.hostPath', { path: '/x', type: '' }],
    [
      'v1',
      'persistentvolumes',
      { spec: { rbd: { monitors: ['m'], user: 'u' } } },
      'spec.rbd',
      { monitors: ['m'], user: 'u', pool: 'rbd', keyring: '/etc/ceph/keyring' },
    ],
    [
      'v1',
      'pods',
      { spec: { volumes: [{ name: 'v', scaleIO: { fsType: 'ext4' } }] } },
      'spec.volumes.0.scaleIO',
      { fsType: 'ext4', storageMode: 'ThinProvisioned' },
    ],
    [
      'apps/v1',
      'deployments',
      { spec: { template } },
      'spec.strategy',
      { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: '25%', maxSurge: '25%' } },
    ],
    ['apps/v1', 'deployments', { spec: { template } }, 'spec.template.spec.dnsPolicy', 'ClusterFirst'],
    ['apps/v1', 'deployments', { spec: { template } }, 'spec.template.spec.enableServiceLinks', undefined],
    ['apps/v1', 'deployments', { spec: { strategy: { type: 'Recreate' } } }, 'spec.strategy', { type: 'Recreate' }],
    ['apps/v1', 'statefulsets', {}, 'spec.updateStrategy.rollingUpdate.partition', 0],
    ['apps/v1', 'daemonsets', {}, 'spec.updateStrategy.rollingUpdate.maxUnavailable', 1],
    ['batch/v1', 'jobs', {}, 'spec.completions', 1],
    ['batch/v1', 'jobs', { spec: { parallelism: 3 } }, 'spec.completions', undefined],
    ['batch/v1', 'jobs', {}, 'spec.manualSelector', false],
    [
      'batch/v1',
      'cronjobs',
      { spec: { jobTemplate: { spec: {} } } },
      'spec.jobTemplate.spec.manualSelector',
      undefined,
    ],
    ['batch/v1', 'jobs', { spec: { template: labelled({ a: 'b' }) } }, 'metadata', undefined],
    [
      'batch/v1',
      'jobs',
      { metadata: { name: 'j' }, spec: { manualSelector: true, template: labelled({ a: 'b' }) } },
      'metadata.labels',
      { a: 'b' },
    ],
    ['batch/v1', 'jobs', { metadata: {}, spec: { template: labelled(OF_JOB) } }, 'metadata.labels', OF_JOB],
    [
      'batch/v1',
      'jobs',
      { metadata: { labels: { a: 'b' } }, spec: { template: labelled(OF_JOB) } },
      'metadata.labels',
      { a: 'b' },
    ],
    ['v1', 'replicationcontrollers', { spec: { template: labelled({ a: 'b' }) } }, 'spec.selector', { a: 'b' }],
    ['v1', 'replicationcontrollers', { spec: { template: labelled({ a: 'b' }) } }, 'metadata.labels', { a: 'b' }],
    ['v1', 'nodes', { status: { capacity: { cpu: '0.00051' } } }, 'status.allocatable', { cpu: '1m' }],
    [
      'v1',
      'services',
      { spec: { sessionAffinityConfig: { clientIP: { timeoutSeconds: 1 } } } },
      'spec.sessionAffinityConfig',
      undefined,
    ],
    ['v1', 'pods', { spec: sharing }, 'spec.containers.0.ports.0.hostPort', 80],
    [
      'apps/v1',
      'deployments',
      { spec: { template: { spec: sharing } } },
      `${POD_SPEC}.containers.0.ports.0.hostPort`,
      undefined,
    ],
    [
      'v1',
      'pods',
      { spec: { containers: [{ env: [{ name: 'n', valueFrom: { fileKeyRef: { key: 'k' } } }] }] } },
      'spec.containers.0.env.0.valueFrom.fileKeyRef',
      { key: 'k', optional: false },
    ],
    [
      'apps/v1',
      'statefulsets',
      { spec: { updateStrategy: { type: ROLLING } } },
      'spec.updateStrategy',
      { type: ROLLING },
    ],
    [
      'apps/v1',
      'statefulsets',
      { spec: { updateStrategy: { type: ROLLING, rollingUpdate: { maxUnavailable: 2 } } } },
      'spec.updateStrategy.rollingUpdate',
      { partition: 0 },
    ],
    ['batch/v1', 'cronjobs', {}, 'spec.successfulJobsHistoryLimit', 3],
    ['storage.k8s.io/v1', 'storageclasses', {}, 'volumeBindingMode', 'Immediate'],
    [
      'admissionregistration.k8s.io/v1',
      'mutatingwebhookconfigurations',
      { webhooks: [{ rules: [{}] }] },
      'webhooks.0.rules.0.scope',
      '*',
    ],
    [
      'admissionregistration.k8s.io/v1',
      'mutatingwebhookconfigurations',
      { webhooks: [{}] },
      'webhooks.0.reinvocationPolicy',
      'Never',
    ],
    [
      'apiextensions.k8s.io/v1',
      'customresourcedefinitions',
      { spec: { names: { kind: 'Foo' } } },
      'spec.names',
      { kind: 'Foo', singular: 'foo', listKind: 'FooList' },
    ],
    [
      'rbac.authorization.k8s.io/v1',
      'rolebindings',
      { roleRef: {}, subjects: [{ kind: 'User' }] },
      'subjects.0.apiGroup',
      'rbac.authorization.k8s.io',
    ],
    [
      'rbac.authorization.k8s.io/v1',
      'rolebindings',
      { subjects: [{ kind: 'ServiceAccount' }] },
      'subjects.0.apiGroup',
      undefined,
    ],
    ['autoscaling/v2', 'horizontalpodautoscalers', {}, 'spec.metrics.0.resource.target.averageUtilization', 80],
    ['autoscaling/v1', 'horizontalpodautoscalers', {}, 'spec.metrics', undefined],
    ['networking.k8s.io/v1', 'networkpolicies', { spec: { egress: [{}] } }, 'spec.policyTypes', ['Ingress', 'Egress']],
    ['scheduling.k8s.io/v1', 'priorityclasses', {}, 'preemptionPolicy', 'PreemptLowerPriority'],
  ];
  for (const [apiVersion, resource, object, path, expected] of cases) {
    assert.deepEqual(at(defaulted(apiVersion, resource, object), path), expected, `${resource} ${path}`);
  }
});

test('the pull policy follows the tag', () => {
  const cases: [string, string][] = [
    ['nginx', 'latest'],
    ['nginx:latest', 'latest'],
    ['nginx:1', '1'],
    ['localhost:5000/nginx', 'latest'],
    ['localhost:5000/nginx:2', '2'],
    ['nginx@sha256:abc', ''],
    ['nginx:latest@sha256:abc', 'latest'],
  ];
  for (const [image, tag] of cases) assert.equal(imageTag(image), tag, image);
});

test('what a Pod names for all its containers is completed by what they name, and makes its class', () => {
  const sized = (requests: object, limits: object = {}, more: object = {}) => ({
    ...more,
    resources: { requests, limits },
  });
  const sidecar = { restartPolicy: 'Always' };
  for (const [spec, resources, qosClass] of [
    [
      { resources: { limits: { cpu: '2', memory: '1Gi' } }, containers: [{}] },
      { limits: { cpu: '2', memory: '1Gi' }, requests: { cpu: '2', memory: '1Gi' } },
      'Guaranteed',
    ],
    [
      {
        resources: { limits: { cpu: '2' } },
        containers: [sized({ cpu: '100m' }), sized({}, { cpu: '200m' })],
        initContainers: [sized({ cpu: '50m' }, {}, sidecar), sized({ cpu: '400m' })],
      },
      { limits: { cpu: '2' }, requests: { cpu: '450m' } },
      'Burstable',
    ],
    [
      { resources: { requests: { cpu: '1' } }, containers: [sized({}, { 'hugepages-2Mi': '4Mi' })] },
      { requests: { cpu: '1', 'hugepages-2Mi': '4Mi' }, limits: { 'hugepages-2Mi': '4Mi' } },
      'Burstable',
    ],
    [{ resources: {}, containers: [sized({ cpu: '1' }, { cpu: '1', memory: '1' })] }, {}, 'BestEffort'],
    [{ containers: [sized({ cpu: '0' }, { cpu: '1', memory: '1' })] }, undefined, 'Burstable'],
  ] as const) {
    const pod = defaulted('v1', 'pods', structuredClone({ spec }));
    assert.deepEqual(at(pod, 'spec.resources'), resources);
    assert.equal(at(pod, 'status.qosClass'), qosClass);
  }
});

test('a key called __proto__ in stringData stays a key', () => {
  const secret = defaulted('v1', 'secrets', { stringData: JSON.parse('{"__proto__":"x"}') as unknown });
  assert.deepEqual(Object.keys(secret['data'] as object), ['__proto__']);
});

test('defaulting twice changes nothing more, whatever the object holds', () => {
  const json = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      fc.constantFrom<unknown>(null, '', 'x', 0, 1, true),
      fc.array(tie('value'), { maxLength: 3 }),
      fc.dictionary(
        fc.constantFrom(
          'spec',
          'template',
          'containers',
          'volumes',
          'ports',
          'status',
          'metadata',
          'labels',
          'names',
          'webhooks',
        ),
        tie('value'),
        { maxKeys: 4 },
      ),
    ),
  })).value;
  const infos = builtinResources();
  fc.assert(
    fc.property(
      fc.nat(infos.length - 1),
      fc.dictionary(fc.constantFrom('spec', 'status', 'metadata', 'webhooks', 'template'), json),
      (i, object) => {
        const info = infos[i]!;
        const once = structuredClone({ ...object }) as Record<string, unknown>;
        info.strategy.setDefaults?.(once);
        const twice = structuredClone(once);
        info.strategy.setDefaults?.(twice);
        assert.deepEqual(twice, once);
        info.strategy.validateUpdate?.(once, structuredClone({ ...object }) as Record<string, unknown>);
      },
    ),
    { numRuns: 300 },
  );
});

// Compat Types, P2, yes: a negative `terminationGracePeriodSeconds` is stored as 1
test('a negative time to end is one second', () => {
  const pod = defaulted('v1', 'pods', { spec: { ...podSpec, terminationGracePeriodSeconds: -1 } });
  assert.equal(at(pod, 'spec.terminationGracePeriodSeconds'), 1);
  const zero = defaulted('v1', 'pods', { spec: { ...podSpec, terminationGracePeriodSeconds: 0 } });
  assert.equal(at(zero, 'spec.terminationGracePeriodSeconds'), 0);
});

test('requests for devices get a mode and a count', () => {
  const requests = [{ exactly: {} }, { firstAvailable: [{ allocationMode: 'All' }, {}] }];
  const claim = defaulted('resource.k8s.io/v1', 'resourceclaims', { spec: { devices: { requests } } });
  const one = { allocationMode: 'ExactCount', count: 1 };
  assert.deepEqual(at(claim, 'spec.devices.requests'), [
    { exactly: one },
    { firstAvailable: [{ allocationMode: 'All' }, one] },
  ]);
});
