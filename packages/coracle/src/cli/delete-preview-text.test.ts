/** What `--what-if` and `protect status` print. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { MachinePreview, NamespacePreview } from './delete-preview.ts';
import { machinePreviewText, namespacePreviewText } from './delete-preview-text.ts';
import { machineStatusText, statusTable } from './protect-status-text.ts';

const row = (kind: string, name: string, fate: string, more: object = {}) => ({
  apiGroup: '',
  kind,
  name,
  namespace: 'shop',
  fate,
  ...more,
});
const block = {
  reason: 'Protected' as const,
  message: 'label x=true',
  command: 'kubectl label vm db -n shop x-',
  whoMay: {
    verbs: ['patch', 'update'],
    on: 'the machine',
    you: false,
    grants: Array.from({ length: 7 }, (_, i) => ({ subject: `User u${i}`, binding: 'RoleBinding b', role: 'Role r' })),
  },
};
const machine = (more: object): MachinePreview => ({
  object: { kind: 'VirtualMachine', namespace: 'shop', name: 'db' },
  verdict: { allowed: true },
  blocks: [],
  objects: [],
  finalizers: [],
  notListed: [],
  ...more,
});

test('a machine that nothing concerns', () =>
  assert.equal(
    machinePreviewText(machine({})),
    'VirtualMachine shop/db would be deleted\n\nno other object is concerned',
  ));

test('a machine that is refused: decision, reasons, objects, finalizers, what was not looked at', () =>
  assert.equal(
    machinePreviewText(
      machine({
        verdict: { allowed: false, code: 422, message: 'no' },
        blocks: [block],
        objects: [
          row('Pod', 'a', 'Deleted'),
          row('Secret', 'keys', 'Kept', {
            usedBy: ['VirtualMachine/web', 'VirtualMachineInstance/x'],
            usedByTotal: 12,
          }),
          row('PersistentVolumeClaim', 'disk', 'Held', { why: 'web refers to it' }),
          row('Secret', 'b', 'Missing'),
          row('Secret', 'c', 'Unknown'),
        ],
        finalizers: [{ kind: 'VirtualMachine', name: 'db', finalizer: 'a/b', waitsFor: 'c' }],
        notListed: ['secrets', 'pods'],
      }),
    ),
    `VirtualMachine shop/db would not be deleted: no

AGAINST IT    TO LIFT IT                      WHO MAY
label x=true  kubectl label vm db -n shop x-  not you; User u0 (RoleBinding b); User u1 (RoleBinding b); User u2 (RoleBinding b); User u3 (RoleBinding b); User u4 (RoleBinding b); and 2 more

KIND                   NAME  THEN       WHY               ALSO USED BY
Pod                    a     deleted
Secret                 keys  stays                        vm/web, VirtualMachineInstance/x, and 10 more
PersistentVolumeClaim  disk  held back  web refers to it
Secret                 b     not there
Secret                 c     unknown

WAITS              FINALIZER  TAKEN OFF BY
VirtualMachine/db  a/b        c

not looked at, since you may not list them: secrets, pods`,
  ));

test('what stands against a deletion that the server would do all the same is said to be not enforced', () =>
  assert.match(
    machinePreviewText(machine({ blocks: [block] })),
    /^VirtualMachine shop\/db would be deleted: what blocks it below is not enforced by this server\n/,
  ));

test('a namespace: machines that keep it, what else does, and how much would go', () => {
  const { whoMay: _, ...plain } = block;
  const preview: NamespacePreview = {
    object: { kind: 'Namespace', name: 'shop' },
    verdict: { allowed: false, message: 'no' },
    blocks: [
      {
        reason: 'KruiseProtected',
        message: 'forbidden',
        command: 'kubectl label namespace shop y-',
        whoMay: { verbs: ['update'], on: 'the namespace', you: false },
      },
    ],
    machines: [
      {
        name: 'db',
        blocks: [{ ...plain, whoMay: { verbs: ['patch', 'update', 'unprotect'], on: 'the machine', you: true } }],
      },
    ],
    counts: [{ resource: 'secrets', count: 2 }],
    finalizers: [],
    notListed: [],
  };
  assert.equal(
    namespacePreviewText(preview),
    `namespace shop would not be deleted: no

AGAINST IT  TO LIFT IT                       WHO MAY
forbidden   kubectl label namespace shop y-  not you (it takes update on the namespace)

PROTECTED VM  BY            TO LIFT IT                      WHO MAY
db            label x=true  kubectl label vm db -n shop x-  you (it takes patch or update, and unprotect on the machine)

RESOURCE  OBJECTS
secrets   2`,
  );
  assert.equal(
    namespacePreviewText({ ...preview, verdict: { allowed: true }, blocks: [], machines: [], counts: [] }),
    'namespace shop would be deleted\n\nno machine in it is protected\n\nit is empty',
  );
});

test('protect status: a row for each machine, and one machine in full', () => {
  const part = (kind: string, name: string, state: string, more: object = {}) =>
    ({ kind, name, namespace: 'shop', field: 'spec.x', state, ...more }) as never;
  const db = {
    namespace: 'shop',
    name: 'db',
    protected: true,
    onlyWhenStopped: true,
    parts: [part('Secret', 'a', 'Exists'), part('Secret', 'b', 'Unknown'), part('ConfigMap', 'c', 'Missing')],
  };
  assert.equal(
    statusTable([db, { ...db, name: 'web', onlyWhenStopped: false, parts: [] }]),
    `NAMESPACE  NAME  STOPPED FIRST  KEEPS         MISSING
shop       db    yes            2 Secret      ConfigMap/c
shop       web   no             nothing else`,
  );
  assert.equal(statusTable([]), 'no machine is protected');
  assert.equal(statusTable([], 'shop'), 'no machine is protected in namespace shop (all namespaces: -A)');
  const one = { ...db, blocks: [block], whoMay: { verbs: [], on: 'the machine', you: true, grants: [] } };
  const parts = [part('Secret', 'a', 'Exists', { usedBy: ['web', 'x'] })];
  assert.equal(
    machineStatusText({ ...one, parts }),
    `VirtualMachine shop/db is protected
it may be deleted only when it is stopped
against its deletion: label x=true; to lift it: kubectl label vm db -n shop x-
who may lift the protection: you

KEPT    NAME  STATE  NAMED BY  ALSO USED BY
Secret  a     there  spec.x    vm/web, vm/x`,
  );
  assert.equal(
    machineStatusText({ ...db, protected: false, onlyWhenStopped: false, parts: [] }),
    'VirtualMachine shop/db is not protected\n\nit refers to no other object',
  );
});
