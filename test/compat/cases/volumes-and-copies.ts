import type { Group } from '../steps.ts';

const SHELF = `apiVersion: v1
kind: PersistentVolume
metadata: {name: shelf-{ns}}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  hostPath: {path: /tmp/shelf}
  storageClassName: manual
`;
const BOX = `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: box}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: manual
  resources: {requests: {storage: 500Mi}}
`;
const BOX_SNAPSHOT = `apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshot
metadata: {name: picture}
spec: {volumeSnapshotClassName: local, source: {persistentVolumeClaimName: absent}}
`;
const WEB = `apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: web, labels: {tier: front, owner: ann}}
spec: {runStrategy: Halted, template: {spec: {domain: {devices: {}, memory: {guest: 64Mi}}}}}
`;
const clone = (kind: string): string => `apiVersion: clone.kubevirt.io/v1beta1
kind: VirtualMachineClone
metadata: {name: copy}
spec:
  source: {apiGroup: kubevirt.io, kind: ${kind}, name: web}
  target: {apiGroup: kubevirt.io, kind: VirtualMachine, name: web2}
  labelFilters: ["*", "!owner"]
`;
const backup = (kind: 'VirtualMachineBackup' | 'VirtualMachineBackupTracker', more = ''): string =>
  `apiVersion: backup.kubevirt.io/v1alpha1
kind: ${kind}
metadata: {name: nightly}
spec:
  source: {apiGroup: kubevirt.io, kind: VirtualMachine, name: web}
${more}`;

export const VOLUMES_AND_COPIES: readonly Group[] = [
  {
    // S-844: kubectl makes, shows, binds, releases and deletes volumes, claims, VolumeSnapshots and clones of machines
    //   with upstream's columns and words; backups of machines say which feature gate they need.
    name: 'volumes and claims',
    steps: [
      {
        run: 'get storageclass',
        out: `NAME  PROVISIONER  RECLAIMPOLICY  VOLUMEBINDINGMODE  ALLOWVOLUMEEXPANSION  AGE
local (default)  local.coracle.dev  Delete  Immediate  true  <age>
local-wait  local.coracle.dev  Delete  WaitForFirstConsumer  true  <age>`,
      },
      {
        run: 'get volumesnapshotclass',
        out: 'NAME  DRIVER  DELETIONPOLICY  AGE\nlocal  local.coracle.dev  Delete  <age>',
      },
      { run: 'create -f -', input: SHELF, out: 'persistentvolume/shelf-{ns} created' },
      { run: 'create -f -', input: BOX, out: 'persistentvolumeclaim/box created' },
      {
        run: `wait pvc/box --for=jsonpath='{.status.phase}'=Bound --timeout=60s`,
        out: 'persistentvolumeclaim/box condition met',
      },
      {
        run: 'get pvc -o wide',
        out: 'NAME  STATUS  VOLUME  CAPACITY  ACCESS MODES  STORAGECLASS  VOLUMEATTRIBUTESCLASS  AGE  VOLUMEMODE\nbox  Bound  shelf-{ns}  1Gi  RWO  manual  <unset>  <age>  Filesystem',
      },
      {
        run: 'get pv shelf-{ns}',
        out: 'NAME  CAPACITY  ACCESS MODES  RECLAIM POLICY  STATUS  CLAIM  STORAGECLASS  VOLUMEATTRIBUTESCLASS  REASON  AGE\nshelf-{ns}  1Gi  RWO  Retain  Bound  {ns}/box  manual  <unset>  <...><age>',
      },
      {
        run: `patch pvc box -p '{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}'`,
        err: 'Error from server (Forbidden): persistentvolumeclaims "box" is forbidden: only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize',
        code: 1,
      },
      { run: 'delete pvc box', out: 'persistentvolumeclaim "box" deleted<from>' },
      {
        run: `wait pv/shelf-{ns} --for=jsonpath='{.status.phase}'=Released --timeout=60s`,
        out: 'persistentvolume/shelf-{ns} condition met',
      },
      { run: 'create -f -', input: BOX_SNAPSHOT, out: 'volumesnapshot.snapshot.storage.k8s.io/picture created' },
      {
        run: `wait volumesnapshot/picture --for=jsonpath='{.status.readyToUse}'=false --timeout=60s`,
        out: 'volumesnapshot.snapshot.storage.k8s.io/picture condition met',
      },
      {
        run: `get volumesnapshot picture -o jsonpath='{.status.error.message}'`,
        out: '<...>"absent" not found<...>',
      },
      { run: 'delete volumesnapshot picture', out: 'volumesnapshot.snapshot.storage.k8s.io "picture" deleted<from>' },
      {
        run: 'delete pv shelf-{ns}',
        out: 'persistentvolume "shelf-{ns}" deleted',
        err: '<lines>',
      },
    ],
  },
  {
    // S-844
    name: 'clones and backups of machines',
    steps: [
      {
        run: 'api-resources --api-group=clone.kubevirt.io',
        out: `NAME  SHORTNAMES  APIVERSION  NAMESPACED  KIND
virtualmachineclones  vmclone,vmclones  clone.kubevirt.io/v1beta1  true  VirtualMachineClone`,
      },
      {
        run: 'api-resources --api-group=backup.kubevirt.io',
        out: `NAME  SHORTNAMES  APIVERSION  NAMESPACED  KIND
virtualmachinebackups  vmbackup,vmbackups  backup.kubevirt.io/v1alpha1  true  VirtualMachineBackup
virtualmachinebackuptrackers  vmbackuptracker,vmbackuptrackers  backup.kubevirt.io/v1alpha1  true  VirtualMachineBackupTracker`,
      },
      { run: 'apply -f -', input: WEB, out: 'virtualmachine.kubevirt.io/web created' },
      {
        run: 'apply -f -',
        input: clone('Pod'),
        err: '<...>invalid<...>',
        code: 1,
      },
      { run: 'apply -f -', input: clone('VirtualMachine'), out: 'virtualmachineclone.clone.kubevirt.io/copy created' },
      {
        run: 'wait vmclone/copy --for=condition=Ready --timeout=60s',
        out: 'virtualmachineclone.clone.kubevirt.io/copy condition met',
      },
      {
        run: 'get vmclone',
        out: 'NAME  PHASE  SOURCEVIRTUALMACHINE  TARGETVIRTUALMACHINE\ncopy  Succeeded  web  web2',
      },
      {
        run: 'get vm web2 --show-labels',
        out: 'NAME  AGE  STATUS  READY  LABELS\nweb2  <age>  Stopped  False  tier=front',
      },
      {
        run: `patch vmclone copy --type=merge -p '{"spec":{"newSMBiosSerial":"x"}}'`,
        err: 'The request is invalid: spec: spec in immutable after creation',
        code: 1,
      },
      { run: 'get vmsnapshot,vmrestore', err: 'No resources found in {ns} namespace.' },
      {
        run: 'apply -f -',
        input: backup('VirtualMachineBackupTracker'),
        err: '<...>admission webhook "virtualmachinebackuptracker-validator.backup.kubevirt.io" denied the request: IncrementalBackup feature gate not enabled',
        code: 1,
      },
      {
        run: 'apply -f -',
        input: backup('VirtualMachineBackup', '  pvcName: out\n'),
        err: '<...>admission webhook "virtualmachinebackup-validator.backup.kubevirt.io" denied the request: IncrementalBackup feature gate not enabled',
        code: 1,
      },
      {
        run: 'delete vm web web2',
        out: 'virtualmachine.kubevirt.io "web" deleted<from>\nvirtualmachine.kubevirt.io "web2" deleted<from>',
      },
    ],
  },
];
