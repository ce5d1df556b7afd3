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

const ssp = (name: string) => `
apiVersion: ssp.kubevirt.io/v1beta3
kind: SSP
metadata: {name: ${name}}
spec: {commonTemplates: {namespace: kubevirt}}
`;
const SSP = 'ssp.ssp.kubevirt.io/ssp';
const paused = (change: string): Step => ({
  run: `annotate ssp/ssp kubevirt.io/operator.paused${change}`,
  out: `${SSP} annotated`,
});

/** An SSP object asks for the policy, is paused, and goes; the policy stays. */
const ASKED_FOR: readonly Step[] = [
  { run: 'apply -f -', input: ssp('ssp'), out: `${SSP} created` },
  { run: 'wait ssp/ssp --for=condition=Available --timeout=60s', out: `${SSP} condition met` },
  { run: 'get ssp', out: 'NAME  PHASE\nssp  Deployed' },
  {
    run: `get ${POLICY} -o jsonpath={.metadata.annotations}`,
    out: '{"operator-sdk/primary-resource":"{ns}/ssp","operator-sdk/primary-resource-type":"SSP.ssp.kubevirt.io"}',
  },
  {
    run: 'create -f -',
    input: ssp('second'),
    code: 1,
    err: 'Error from server (Forbidden): error when creating "STDIN": admission webhook "validation.v1beta3.ssp.kubevirt.io" denied the request: creation failed, an SSP CR already exists in namespace {ns}: ssp',
  },
  paused('=true'),
  { run: 'wait ssp/ssp --for=jsonpath={.status.paused}=true --timeout=60s', out: `${SSP} condition met` },
  {
    run: `patch ${BINDING} --type=merge -p {"spec":{"validationActions":["Warn"]}}`,
    out: `${full(BINDING)} patched`,
  },
  { run: `get ${BINDING} -o jsonpath={.spec.validationActions[0]}`, out: 'Warn' },
  paused('-'),
  {
    run: `wait ${BINDING} --for=jsonpath={.spec.validationActions[0]}=Deny --timeout=60s`,
    out: `${full(BINDING)} condition met`,
  },
  { run: 'delete ssp ssp', out: 'ssp.ssp.kubevirt.io "ssp" deleted<from>' },
  { run: `get ${POLICY} -o jsonpath={.metadata.annotations}`, out: '' },
  ...isKept('kept-after-ssp', 'true'),
  {
    run: 'get events --field-selector=involvedObject.name=lower-true -o jsonpath={.items[*].reason}',
    out: 'DeletionRefused',
  },
];

export const PROTECTION: readonly Group[] = [
  {
    // S-701
    // S-742
    name: 'deletion protection',
    steps: [
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
      ...ASKED_FOR,
    ],
  },
  {
    // S-794
    name: 'dry runs of deletions',
    steps: [
      { run: 'create secret generic keys', out: 'secret/keys created' },
      { run: 'create secret generic free', out: 'secret/free created' },
      {
        run: 'apply -f -',
        input: machine('db', `{${LABEL}: "true"}`).replace(
          'devices: {}}',
          'devices: {}}, volumes: [{name: keys, secret: {secretName: keys}}]',
        ),
        out: 'virtualmachine.kubevirt.io/db created',
      },
      { ...refused('db'), run: 'delete vm db --dry-run=server' },
      ...['delete secret keys --dry-run=server', 'delete secret keys'].map((run) => ({
        run,
        code: 1,
        err: `Error from server (Forbidden): secrets "keys" is forbidden: protected VirtualMachine {ns}/db (spec.template.spec.volumes[0].secret.secretName) refers to it; disable/remove label '${LABEL}' from that VirtualMachine before deleting it`,
      })),
      {
        run: 'delete namespace {ns} --dry-run=server',
        code: 1,
        err: `<lines>Error from server (Forbidden): namespaces "{ns}" is forbidden: protected VirtualMachine {ns}/db is in it; disable/remove label '${LABEL}' from that VirtualMachine before deleting it`,
      },
      { run: 'delete secret free --dry-run=server', out: 'secret "free" deleted<from> (server dry run)' },
      { run: `label vm db ${LABEL}-`, out: 'virtualmachine.kubevirt.io/db unlabeled' },
      {
        run: 'delete vm db --dry-run=server',
        out: 'virtualmachine.kubevirt.io "db" deleted<from> (server dry run)',
      },
      { run: 'get vm db -o name', out: 'virtualmachine.kubevirt.io/db' },
      { run: 'delete secret keys --dry-run=server', out: 'secret "keys" deleted<from> (server dry run)' },
      deleted('db'),
    ],
  },
];
