/** What differs between versions of kubectl: a short walk on each, and protobuf bodies beside JSON ones. */
// test:full: six versions, each with processes of its own.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { adminOf, type ControlPlaneProcess, createNamespace, startProcess } from '../testkit/control-plane-process.ts';
import { EVERY_VERSION } from './cases/every-version.ts';
import { PROTOBUF_COMMANDS } from './cases/protobuf.ts';
import { findKubectls, type Kubectl, runKubectl } from './kubectl.ts';
import { runStep, type StepContext } from './steps.ts';

const kubectls = findKubectls();
const skip = kubectls.length < 2 && 'there are no two versions of kubectl here';

let folder = '';
let controlPlane: ControlPlaneProcess | undefined;
let env: Record<string, string> = {};

before(async () => {
  if (skip) return;
  folder = mkdtempSync(join(tmpdir(), 'coracle-versions-'));
  controlPlane = await startProcess(join(folder, 'data'));
  env = { HOME: folder, PATH: process.env['PATH'] ?? '', KUBECONFIG: join(folder, 'data', 'kubeconfig') };
});

after(async () => {
  await controlPlane?.kill('SIGTERM');
  if (folder !== '') rmSync(folder, { recursive: true, force: true });
});

async function namespaceOf(name: string): Promise<string> {
  const admin = adminOf(join(folder, 'data'));
  try {
    return await createNamespace(admin.client, name);
  } finally {
    await admin.close();
  }
}

const contextOf = (kubectl: Kubectl, namespace: string): StepContext => ({ kubectl, namespace, env, cwd: folder });

suite('older versions', { skip, concurrency: 2 }, () => {
  for (const kubectl of kubectls.slice(0, -1)) {
    // S-127
    test(`kubectl 1.${kubectl.minor}`, async (t) => {
      const context = contextOf(kubectl, await namespaceOf(`v1-${kubectl.minor}`));
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
    createAndRead(contextOf(speaksJson!, await namespaceOf('as-json'))),
    createAndRead(contextOf(speaksProtobuf!, await namespaceOf('as-protobuf'))),
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
