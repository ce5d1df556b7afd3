import assert from 'node:assert/strict';
import { test } from 'node:test';
import type {
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  StorageClass,
} from '../../../apimachinery/src/types/types.ts';
import { podVolumes } from './pod-volumes.ts';

const pod = (...names: string[]) =>
  ({
    metadata: { namespace: 'n', name: 'p' },
    spec: {
      containers: [],
      volumes: names.map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } })),
    },
  }) as unknown as Pod;
const node = (name: string, labels: Record<string, string> = {}) => ({ metadata: { name, labels } }) as Node;
const claim = (name: string, spec: object = {}, more: { annotations?: object; status?: object; gone?: boolean } = {}) =>
  ({
    metadata: {
      namespace: 'n',
      name,
      uid: name,
      annotations: more.annotations,
      ...(more.gone && { deletionTimestamp: 'now' }),
    },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, ...spec },
    status: more.status ?? {},
  }) as unknown as PersistentVolumeClaim;
const bound = { annotations: { 'pv.kubernetes.io/bind-completed': 'yes' }, status: { phase: 'Bound' } };
const volume = (name: string, spec: object = {}) =>
  ({
    metadata: { name },
    spec: { accessModes: ['ReadWriteOnce'], capacity: { storage: '1Gi' }, storageClassName: 'wait', ...spec },
    status: { phase: 'Available' },
  }) as unknown as PersistentVolume;
const only = (value: string) => ({
  nodeAffinity: {
    required: { nodeSelectorTerms: [{ matchExpressions: [{ key: 'z', operator: 'In', values: [value] }] }] },
  },
});
const CLASSES: Record<string, object> = {
  now: { provisioner: 'p', volumeBindingMode: 'Immediate' },
  wait: { provisioner: 'kubernetes.io/no-provisioner', volumeBindingMode: 'WaitForFirstConsumer' },
  made: { provisioner: 'local.coracle.dev', volumeBindingMode: 'WaitForFirstConsumer' },
  zoned: {
    provisioner: 'p',
    volumeBindingMode: 'WaitForFirstConsumer',
    allowedTopologies: [{ matchLabelExpressions: [{ key: 'z', values: ['a'] }] }],
  },
};
const POOL = { 'topology.coracle.dev/pool': 'one' };
const CONFLICT = "node(s) didn't match PersistentVolume's node affinity";
const NONE = "node(s) didn't find available persistent volumes to bind";

const CASES: readonly [
  what: string,
  claims: PersistentVolumeClaim[],
  volumes: PersistentVolume[],
  at: Node,
  expected: string | readonly (string | undefined)[],
][] = [
  ['a claim that is not there', [], [], node('a'), 'persistentvolumeclaim "c" not found'],
  ['a claim that goes', [claim('c', {}, { gone: true })], [], node('a'), 'persistentvolumeclaim "c" is being deleted'],
  [
    'a claim that lost its volume',
    [claim('c', { volumeName: 'v' }, { status: { phase: 'Lost' } })],
    [],
    node('a'),
    'persistentvolumeclaim "c" bound to non-existent persistentvolume "v"',
  ],
  [
    'a claim of an immediate class',
    [claim('c', { storageClassName: 'now' })],
    [],
    node('a'),
    'pod has unbound immediate PersistentVolumeClaims',
  ],
  [
    'a volume that is another claim’s',
    [claim('c', { volumeName: 'v' }, bound)],
    [volume('v', { claimRef: { namespace: 'n', name: 'x', uid: 'x' } })],
    node('a'),
    'node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)',
  ],
  [
    'a volume of another zone',
    [claim('c', { volumeName: 'v' }, bound)],
    [volume('v', { claimRef: { namespace: 'n', name: 'c', uid: 'c' }, ...only('b') })],
    node('a', { z: 'a' }),
    CONFLICT,
  ],
  [
    'a volume of this zone',
    [claim('c', { volumeName: 'v' }, bound)],
    [volume('v', { claimRef: { namespace: 'n', name: 'c', uid: 'c' }, ...only('a') })],
    node('a', { z: 'a' }),
    [],
  ],
  [
    'a free volume of this zone',
    [claim('c', { storageClassName: 'wait' })],
    [volume('v', only('b')), volume('w', only('a'))],
    node('a', { z: 'a' }),
    ['w'],
  ],
  ['no free volume', [claim('c', { storageClassName: 'wait' })], [volume('v', only('b'))], node('a', { z: 'a' }), NONE],
  ['a pool', [claim('c', { storageClassName: 'made' })], [], node('a', POOL), [undefined]],
  ['no pool', [claim('c', { storageClassName: 'made' })], [], node('a'), 'node(s) did not have enough free storage'],
  ['a zone of the class', [claim('c', { storageClassName: 'zoned' })], [], node('a', { z: 'a' }), [undefined]],
  ['no zone of the class', [claim('c', { storageClassName: 'zoned' })], [], node('a', { z: 'b' }), NONE],
  [
    'another node selected',
    [claim('c', { storageClassName: 'made' }, { annotations: { 'volume.kubernetes.io/selected-node': 'b' } })],
    [],
    node('a', POOL),
    NONE,
  ],
];
for (const [what, claims, volumes, at, expected] of CASES) {
  test(`podVolumes() of a Pod with ${what}`, () => {
    const found = podVolumes(pod('c'), {
      claimNamed: (_namespace, name) => claims.find(({ metadata }) => metadata.name === name),
      volumeNamed: (name) => volumes.find(({ metadata }) => metadata.name === name),
      classNamed: (name) => CLASSES[name] as StorageClass | undefined,
      volumes: () => volumes,
    });
    const refusal = found.refusal ?? found.refusalOf(at);
    assert.deepEqual(refusal ?? found.choices(at).map((choice) => choice.volume?.metadata.name), expected);
  });
}

// S-532
test('podVolumes() gives no volume to two claims of a Pod', () => {
  const claims = [claim('a', { storageClassName: 'wait' }), claim('b', { storageClassName: 'wait' })];
  const facts = (volumes: PersistentVolume[]) => ({
    claimNamed: (_namespace: string, name: string) => claims.find(({ metadata }) => metadata.name === name),
    volumeNamed: () => undefined,
    classNamed: (name: string) => CLASSES[name] as StorageClass | undefined,
    volumes: () => volumes,
  });
  assert.equal(podVolumes(pod('a', 'b'), facts([volume('v')])).refusalOf(node('n')), NONE);
  const two = podVolumes(pod('a', 'b'), facts([volume('v'), volume('w')]));
  assert.deepEqual(
    two.choices(node('n')).map(({ volume: one }) => one?.metadata.name),
    ['v', 'w'],
  );
});
