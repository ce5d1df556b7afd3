/** The tables of `cases/`, on the newest kubectl there is; a short walk on every other one. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { NAMESPACES } from '../../packages/apimachinery/src/types/resource-types.ts';
import { adminOf, type ControlPlaneProcess, startProcess } from '../testkit/control-plane-process.ts';
import { ACCESS } from './cases/access.ts';
import { ADMISSION } from './cases/admission.ts';
import { CHANGE } from './cases/change.ts';
import { CREATE } from './cases/create.ts';
import { CUSTOM_RESOURCES } from './cases/custom-resources.ts';
import { DELETE_PROTECTION } from './cases/delete-protection.ts';
import { DISCOVERY } from './cases/discovery.ts';
import { INSTANCETYPES } from './cases/instancetypes.ts';
import { CONFIG_MAP, VM } from './cases/manifests.ts';
import { PROTECTION } from './cases/protection.ts';
import { PROTOBUF_COMMANDS } from './cases/protobuf.ts';
import { READ } from './cases/read.ts';
import { REMOVE } from './cases/remove.ts';
import { SNAPSHOTS } from './cases/snapshots.ts';
import { VOLUMES_AND_COPIES } from './cases/volumes-and-copies.ts';
import { findKubectls, type Kubectl, runKubectl } from './kubectl.ts';
import { runStep, type Step, type StepContext } from './steps.ts';

const kubectls = findKubectls();
const newest = kubectls.at(-1);
/** The tables' answers are those of versions people run today; Debian 12's own is 1.20. */
const OLDEST = 27;
const skip =
  newest === undefined
    ? 'there is no kubectl on PATH'
    : newest.minor < OLDEST && `kubectl 1.${newest.minor} is older than 1.${OLDEST}, for which the tables are written`;

let folder = '';
let controlPlane: ControlPlaneProcess | undefined;
let env: Record<string, string> = {};

before(async () => {
  if (newest === undefined) return;
  folder = mkdtempSync(join(tmpdir(), 'coracle-compat-'));
  controlPlane = await startProcess(join(folder, 'data'));
  env = {
    HOME: folder,
    PATH: process.env['PATH'] ?? '',
    KUBECONFIG: join(folder, 'data', 'kubeconfig'),
  };
});

after(async () => {
  await controlPlane?.kill('SIGTERM');
  if (folder !== '') rmSync(folder, { recursive: true, force: true });
});

async function createNamespace(name: string): Promise<string> {
  const admin = adminOf(join(folder, 'data'));
  try {
    await admin.client.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  } finally {
    await admin.close();
  }
  return name;
}

const contextOf = (kubectl: Kubectl, namespace: string): StepContext => ({ kubectl, namespace, env, cwd: folder });

// Groups keep to their own namespaces: two at a time.
suite('tables', { skip, concurrency: 2 }, () => {
  for (const group of [
    ...READ,
    ...CHANGE,
    ...REMOVE,
    ...DELETE_PROTECTION,
    ...CREATE,
    ...DISCOVERY,
    ...ACCESS,
    ...CUSTOM_RESOURCES,
    ...ADMISSION,
    ...INSTANCETYPES,
    ...SNAPSHOTS,
    ...VOLUMES_AND_COPIES,
    ...PROTECTION,
  ]) {
    test(group.name, async (t) => {
      const context = contextOf(newest!, await createNamespace(group.name.replaceAll(' ', '-')));
      for (const step of group.steps) {
        const tooOld = newest!.minor < (step.from ?? 0) && `kubectl 1.${step.from} is the first that can`;
        await t.test(step.run, { skip: tooOld }, () => runStep(step, context));
      }
    });
  }
});

const EVERY_VERSION: readonly Step[] = [
  { run: 'apply -f -', input: CONFIG_MAP, out: 'configmap/c created' },
  { run: 'apply --server-side -f -', input: VM, out: 'virtualmachine.kubevirt.io/vm serverside-applied' },
  { run: 'get cm c', out: 'NAME  DATA  AGE\nc  2  <age>' },
  {
    run: 'create deployment d --image=i',
    out: 'deployment.apps/d created',
    err: 'Warning: nothing acts on this Deployment yet<...>',
  },
  { run: 'scale deployment d --replicas=2', out: 'deployment.apps/d scaled' },
  { run: 'explain vm.spec.runStrategy', out: '<lines>FIELD: runStrategy <string>\n<lines>' },
  {
    run: 'delete deployment/d cm/c vm/vm',
    out: 'deployment.apps "d" deleted<from>\nconfigmap "c" deleted<from>\nvirtualmachine.kubevirt.io "vm" deleted<from>',
  },
];

suite('older versions', { skip, concurrency: 2 }, () => {
  for (const kubectl of kubectls.slice(0, -1)) {
    // S-127: kubectl of earlier minor versions, from 1.27 on, applies, reads, scales, explains and deletes.
    // Compat Pods, nodes, drain, P1, yes: kubectl get, describe, wait, apply, edit, diff, drain, auth, explain
    test(`kubectl 1.${kubectl.minor}`, async (t) => {
      const context = contextOf(kubectl, await createNamespace(`v1-${kubectl.minor}`));
      for (const step of EVERY_VERSION) await t.test(step.run, () => runStep(step, context));
    });
  }
});

/** Versions before 1.32 send JSON where later ones send protobuf. */
const FIRST_WITH_PROTOBUF = 32;
const speaksJson = kubectls.findLast((kubectl) => kubectl.minor < FIRST_WITH_PROTOBUF);
const speaksProtobuf = kubectls.find((kubectl) => kubectl.minor >= FIRST_WITH_PROTOBUF);
const oneLanguage =
  speaksJson === undefined || speaksProtobuf === undefined
    ? 'a kubectl before 1.32 and one after it are needed'
    : false;

// S-126
// Compat HTTP, P0, yes: protobuf request bodies of every built-in kind
test('protobuf bodies make the same objects as JSON bodies', { skip: oneLanguage }, async (t) => {
  const [json, protobuf] = await Promise.all([
    createAndRead(contextOf(speaksJson!, await createNamespace('as-json'))),
    createAndRead(contextOf(speaksProtobuf!, await createNamespace('as-protobuf'))),
  ]);
  for (const [i, { run }] of PROTOBUF_COMMANDS.entries()) {
    await t.test(run, () => assert.deepEqual(protobuf[i], json[i]));
  }
});

/** Runs the create commands and reads the objects back, without what differs from object to object. */
async function createAndRead(context: StepContext): Promise<unknown[]> {
  // Some versions warn here that a flag is deprecated.
  for (const { run } of PROTOBUF_COMMANDS) await runStep({ run, out: '<lines>', err: '<lines>' }, context);
  const { kubectl, namespace, cwd } = context;
  const names = PROTOBUF_COMMANDS.map(({ object }) => object.replaceAll('{ns}', namespace));
  const read = await runKubectl(kubectl, ['get', `--namespace=${namespace}`, '-o', 'json', ...names], { env, cwd });
  assert.equal(read.code, 0, read.stderr);
  const { items } = JSON.parse(read.stdout) as { items: { metadata: { uid: string } }[] };
  assert.equal(items.length, names.length);
  let text = JSON.stringify(items.map(withoutOwnMarks)).replaceAll(namespace, 'NS');
  for (const [i, { metadata }] of items.entries()) text = text.replaceAll(metadata.uid, `UID-${i}`);
  return JSON.parse(text) as unknown[];
}

/** An object without status, times, versions and the addresses the server picked. */
function withoutOwnMarks(object: {
  metadata: Record<string, unknown>;
  status?: unknown;
  spec?: Record<string, unknown>;
}): unknown {
  const { resourceVersion, creationTimestamp, managedFields, ...metadata } = object.metadata;
  assert.ok(resourceVersion !== undefined && creationTimestamp !== undefined);
  const { clusterIP, clusterIPs, ports, ...spec } = object.spec ?? {};
  const plainPorts = Array.isArray(ports) ? ports.map((port) => ({ ...port, nodePort: undefined })) : ports;
  const headless = clusterIP === 'None';
  return { ...object, metadata, status: undefined, spec: { ...spec, ports: plainPorts, headless } };
}
