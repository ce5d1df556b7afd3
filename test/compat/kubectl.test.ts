/** The tables of `cases/`, on the newest kubectl there is; a short walk on the oldest. `kubectl-versions.test.ts` has the others. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { adminOf, type ControlPlaneProcess, createNamespace, startProcess } from '../testkit/control-plane-process.ts';
import { ACCESS } from './cases/access.ts';
import { ADMISSION } from './cases/admission.ts';
import { CHANGE } from './cases/change.ts';
import { CREATE } from './cases/create.ts';
import { CUSTOM_RESOURCES } from './cases/custom-resources.ts';
import { DELETE_PROTECTION } from './cases/delete-protection.ts';
import { DISCOVERY } from './cases/discovery.ts';
import { EVERY_VERSION } from './cases/every-version.ts';
import { INSTANCETYPES } from './cases/instancetypes.ts';
import { PROTECTION } from './cases/protection.ts';
import { READ } from './cases/read.ts';
import { REMOVE } from './cases/remove.ts';
import { SNAPSHOTS } from './cases/snapshots.ts';
import { VOLUMES_AND_COPIES } from './cases/volumes-and-copies.ts';
import { findKubectls, type Kubectl } from './kubectl.ts';
import { runStep, type StepContext } from './steps.ts';

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

async function namespaceOf(name: string): Promise<string> {
  const admin = adminOf(join(folder, 'data'));
  try {
    return await createNamespace(admin.client, name);
  } finally {
    await admin.close();
  }
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
      const context = contextOf(newest!, await namespaceOf(group.name.replaceAll(' ', '-')));
      for (const step of group.steps) {
        const tooOld = newest!.minor < (step.from ?? 0) && `kubectl 1.${step.from} is the first that can`;
        await t.test(step.run, { skip: tooOld }, () => runStep(step, context));
      }
    });
  }
});

// S-127: kubectl of earlier minor versions, from 1.27 on, applies, reads, scales, explains and deletes.
// Compat Pods, nodes, drain, P1, yes: kubectl get, describe, wait, apply, edit, diff, drain, auth, explain
test('the oldest version that there is', { skip }, async (t) => {
  const oldest = kubectls.find(({ minor }) => minor >= OLDEST)!;
  const context = contextOf(oldest, await namespaceOf(`v1-${oldest.minor}`));
  for (const step of EVERY_VERSION) await t.test(step.run, () => runStep(step, context));
});
