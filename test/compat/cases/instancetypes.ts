import type { Group } from '../steps.ts';

const OWN = `apiVersion: instancetype.kubevirt.io/v1beta1
kind: VirtualMachineInstancetype
metadata: {name: small}
spec: {cpu: {guest: 2}, memory: {guest: 64Mi}}
---
apiVersion: instancetype.kubevirt.io/v1beta1
kind: VirtualMachinePreference
metadata: {name: cores}
spec: {cpu: {preferredCPUTopology: preferCores}}
`;

const machine = (name: string, domain: string, matchers: string): string => `apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: ${name}}
spec:
  runStrategy: Halted
  ${matchers}
  template: {spec: {domain: ${domain}}}
`;
const MATCHERS =
  'instancetype: {kind: virtualmachineinstancetype, name: small}\n  preference: {kind: VirtualMachinePreference, name: cores}';

export const INSTANCETYPES: readonly Group[] = [
  {
    // S-182
    name: 'instancetypes',
    steps: [
      {
        run: 'apply -f -',
        input: OWN,
        out: 'virtualmachineinstancetype.instancetype.kubevirt.io/small created\nvirtualmachinepreference.instancetype.kubevirt.io/cores created',
        err: 'Warning: PreferredCPUTopology preferCores is deprecated for removal in a future release, please use cores instead',
      },
      {
        run: 'apply -f -',
        input: machine('vm', '{devices: {}}', MATCHERS),
        out: 'virtualmachine.kubevirt.io/vm created',
      },
      {
        run: `get controllerrevisions -o jsonpath='{range .items[*]}{.metadata.labels.instancetype\\.kubevirt\\.io/object-kind} {.metadata.ownerReferences[0].name}{"\\n"}{end}'`,
        out: 'VirtualMachinePreference vm\nVirtualMachineInstancetype vm',
      },
      {
        run: `wait vm/vm --for=jsonpath='{.status.instancetypeRef.name}'=small --timeout=60s`,
        out: 'virtualmachine.kubevirt.io/vm condition met',
      },
      {
        run: 'apply -f -',
        input: machine('torn', '{devices: {}, cpu: {cores: 2}, memory: {guest: 1Gi}}', MATCHERS),
        err: 'The request is invalid: \n* spec.template.spec.domain.cpu.cores: VM field(s) spec.template.spec.domain.cpu.cores conflicts with selected instance type\n* spec.template.spec.domain.memory.guest: VM field(s) spec.template.spec.domain.memory.guest conflicts with selected instance type',
        code: 1,
      },
      { run: 'delete vmf small', out: 'virtualmachineinstancetype.instancetype.kubevirt.io "small" deleted<from>' },
      { run: `label vm vm a=b`, out: 'virtualmachine.kubevirt.io/vm labeled' },
      {
        run: 'apply -f -',
        input: machine('lost', '{devices: {}}', MATCHERS),
        out: 'virtualmachine.kubevirt.io/lost created',
      },
      {
        run: 'wait vm/lost --for=condition=Failure --timeout=60s',
        out: 'virtualmachine.kubevirt.io/lost condition met',
      },
      {
        run: `get vm lost -o jsonpath='{.status.conditions[?(@.type=="Failure")].reason}: {.status.conditions[?(@.type=="Failure")].message}'`,
        out: 'FailedFindInstancetype: virtualmachineinstancetypes.instancetype.kubevirt.io "small" not found',
      },
      {
        run: 'delete vm vm lost',
        out: 'virtualmachine.kubevirt.io "vm" deleted<from>\nvirtualmachine.kubevirt.io "lost" deleted<from>',
      },
    ],
  },
  {
    name: 'common instancetypes',
    steps: [
      {
        run: `get vmcf u1.nano -o jsonpath='{.spec.cpu.guest} {.spec.memory.guest}'`,
        out: '1 512Mi',
      },
      { run: 'get vmcp fedora -o name', out: 'virtualmachineclusterpreference.instancetype.kubevirt.io/fedora' },
      {
        run: 'get vmcf -l instancetype.kubevirt.io/class=general.purpose,instancetype.kubevirt.io/size=nano -o name',
        out: 'virtualmachineclusterinstancetype.instancetype.kubevirt.io/u1.nano',
      },
    ],
  },
];
