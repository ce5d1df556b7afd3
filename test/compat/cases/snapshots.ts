import type { Group } from '../steps.ts';

const MACHINE = `apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: db}
spec:
  runStrategy: Halted
  template: {spec: {domain: {devices: {}, memory: {guest: 64Mi}}}}
`;
const snapshot = (version: string, kind: string): string => `apiVersion: snapshot.kubevirt.io/${version}
kind: VirtualMachineSnapshot
metadata: {name: before}
spec: {source: {apiGroup: kubevirt.io, kind: ${kind}, name: db}}
`;
const restore = (name: string, target: string): string => `apiVersion: snapshot.kubevirt.io/v1beta1
kind: VirtualMachineRestore
metadata: {name: ${name}}
spec:
  target: {apiGroup: kubevirt.io, kind: VirtualMachine, name: ${target}}
  virtualMachineSnapshotName: before
`;

export const SNAPSHOTS: readonly Group[] = [
  {
    // S-574: kubectl takes, shows, restores and deletes snapshots of machines with upstream's columns, conditions and
    //   words.
    name: 'snapshots',
    steps: [
      {
        run: 'api-resources --api-group=snapshot.kubevirt.io',
        out: `NAME  SHORTNAMES  APIVERSION  NAMESPACED  KIND
virtualmachinerestores  vmrestore,vmrestores  snapshot.kubevirt.io/v1beta1  true  VirtualMachineRestore
virtualmachinesnapshotcontents  vmsnapshotcontent,vmsnapshotcontents  snapshot.kubevirt.io/v1beta1  true  VirtualMachineSnapshotContent
virtualmachinesnapshots  vmsnapshot,vmsnapshots  snapshot.kubevirt.io/v1beta1  true  VirtualMachineSnapshot`,
      },
      { run: 'apply -f -', input: MACHINE, out: 'virtualmachine.kubevirt.io/db created' },
      {
        run: 'apply --dry-run=server -f -',
        input: snapshot('v1beta1', 'VirtualMachine'),
        out: 'virtualmachinesnapshot.snapshot.kubevirt.io/before created (server dry run)',
      },
      {
        run: 'apply -f -',
        input: snapshot('v1beta1', 'Pod'),
        err: 'The request is invalid: spec.source.kind: invalid kind',
        code: 1,
      },
      {
        run: 'apply -f -',
        input: snapshot('v1alpha1', 'VirtualMachine'),
        out: 'virtualmachinesnapshot.snapshot.kubevirt.io/before created',
      },
      {
        run: 'wait vmsnapshot/before --for=condition=Ready --timeout=60s',
        out: 'virtualmachinesnapshot.snapshot.kubevirt.io/before condition met',
      },
      {
        run: 'get vmsnapshot',
        out: 'NAME  SOURCEKIND  SOURCENAME  PHASE  READYTOUSE  CREATIONTIME  ERROR\nbefore  VirtualMachine  db  Succeeded  true  <age>',
      },
      {
        run: 'get vmsnapshotcontent',
        out: 'NAME  READYTOUSE  CREATIONTIME  ERROR\nvmsnapshot-content-<uuid>  true  <age>',
      },
      {
        run: `patch vmsnapshot before --type=merge -p '{"spec":{"deletionPolicy":"Retain"}}'`,
        err: 'The request is invalid: spec: spec in immutable after creation',
        code: 1,
      },
      {
        run: 'apply -f -',
        input: restore('back', 'db'),
        out: 'virtualmachinerestore.snapshot.kubevirt.io/back created',
      },
      {
        run: 'wait vmrestore/back --for=condition=Ready --timeout=60s',
        out: 'virtualmachinerestore.snapshot.kubevirt.io/back condition met',
      },
      {
        run: 'apply -f -',
        input: restore('twin', 'db2'),
        out: 'virtualmachinerestore.snapshot.kubevirt.io/twin created',
      },
      {
        run: 'wait vmrestore/twin --for=condition=Ready --timeout=60s',
        out: 'virtualmachinerestore.snapshot.kubevirt.io/twin condition met',
      },
      {
        run: 'get vmrestore',
        out: 'NAME  TARGETKIND  TARGETNAME  COMPLETE  RESTORETIME  ERROR\nback  VirtualMachine  db  true  <age>\ntwin  VirtualMachine  db2  true  <age>',
      },
      { run: `get vm db2 -o jsonpath='{.spec.runStrategy}'`, out: 'Halted' },
      { run: 'delete vmsnapshot before', out: 'virtualmachinesnapshot.snapshot.kubevirt.io "before" deleted<from>' },
      { run: 'get vmsnapshotcontent', err: '<...>No resources found in <...>' },
      {
        run: 'delete vm db db2',
        out: 'virtualmachine.kubevirt.io "db" deleted<from>\nvirtualmachine.kubevirt.io "db2" deleted<from>',
      },
    ],
  },
];
