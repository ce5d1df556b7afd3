import type { Group, Step } from '../steps.ts';

/** ssp-operator's functional cases of deletion protection (tests/vm_delete_protection_test.go), typed. */
const LABEL = 'kubevirt.io/vm-delete-protection';
const NAME = 'kubevirt-vm-deletion-protection';
const POLICY = `validatingadmissionpolicy/${NAME}`;
const BINDING = `validatingadmissionpolicybinding/${NAME}`;
const full = (object: string): string => object.replace('/', '.admissionregistration.k8s.io/');

const machine = (name: string, labels: string) => `
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: ${name}${labels === '' ? '' : `, labels: ${labels}`}}
spec:
  runStrategy: Halted
  template: {spec: {domain: {devices: {}}}}
`;

const deleted = (name: string): Step => ({
  run: `delete vm ${name}`,
  out: `virtualmachine.kubevirt.io "${name}" deleted<from>`,
});

const refused = (name: string): Step => ({
  run: `delete vm ${name}`,
  code: 1,
  err: `The virtualmachines "${name}" is invalid: : ValidatingAdmissionPolicy '${NAME}' with binding '${NAME}' denied request: VirtualMachine ${name} cannot be deleted, disable/remove label '${LABEL}' from VirtualMachine before deleting it`,
});

/** The machine is refused, dry run and all, loses its label, and goes. */
const isKept = (name: string, value: string): readonly Step[] => [
  {
    run: 'apply -f -',
    input: machine(name, `{${LABEL}: "${value}"}`),
    out: `virtualmachine.kubevirt.io/${name} created`,
  },
  refused(name),
  { ...refused(name), run: `delete vm ${name} --dry-run=server` },
  { ...refused(name), run: `delete vm -l ${LABEL}=${value}` },
  { run: `label vm ${name} ${LABEL}=False --overwrite`, out: `virtualmachine.kubevirt.io/${name} labeled` },
  deleted(name),
];

const goes = (name: string, labels: string): readonly Step[] => [
  { run: 'apply -f -', input: machine(name, labels), out: `virtualmachine.kubevirt.io/${name} created` },
  deleted(name),
];

/** A change that is put back. */
const putBack = (object: string, change: string, path: string): readonly Step[] => [
  { run: `patch ${object} --type=merge -p ${change}`, out: `${full(object)} patched` },
  { run: `wait ${object} --for=jsonpath=${path} --timeout=60s`, out: `${full(object)} condition met` },
];

export const PROTECTION: readonly Group[] = [
  {
    name: 'deletion protection',
    steps: [
      { run: `wait ${POLICY} --for=jsonpath={.status.observedGeneration} --timeout=60s`, from: 31, out: '<lines>' },
      { run: `get ${POLICY} -o jsonpath={.status.typeChecking}`, out: '{}' },
      ...isKept('lower-true', 'true'),
      ...isKept('title-true', 'True'),
      ...goes('title-false', `{${LABEL}: "False"}`),
      ...goes('lower-false', `{${LABEL}: "false"}`),
      ...goes('nice-value', `{${LABEL}: niceValue}`),
      ...goes('upper-true', `{${LABEL}: "TRUE"}`),
      ...goes('empty', `{${LABEL}: ""}`),
      ...goes('no-labels', ''),
      ...putBack(BINDING, '{"spec":{"validationActions":["Warn"]}}', '{.spec.validationActions[0]}=Deny'),
      ...putBack(POLICY, '{"spec":{"failurePolicy":"Ignore"}}', '{.spec.failurePolicy}=Fail'),
      {
        run: `delete ${BINDING}`,
        out: `validatingadmissionpolicybinding.admissionregistration.k8s.io "${NAME}" deleted`,
        err: 'Warning: deleting cluster-scoped resources, not scoped to the provided namespace',
      },
      { run: `wait ${BINDING} --for=create --timeout=60s`, from: 31, out: `${full(BINDING)} condition met` },
    ],
  },
];
