/** Walks tables of `cases/` with the newest kubectl there is, on a control plane of their own. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, type TestContext, test } from 'node:test';
import { adminOf, type ControlPlaneProcess, createNamespace, startProcess } from '../testkit/control-plane-process.ts';
import { findKubectls, type Kubectl } from './kubectl.ts';
import { type Group, runStep, type Step, type StepContext } from './steps.ts';

const kubectls = findKubectls();
const newest = kubectls.at(-1);
/** The tables' answers are those of versions people run today; Debian 12's own is 1.20. */
const OLDEST = 27;
/** Why the tables cannot be walked here, or false. */
export const skip: string | false =
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
    // No process of the tables lives long enough to need its memory back.
    GOGC: 'off',
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

/** Each group is a test, in a namespace of its own, two at a time; with the steps of the full tests, or without. */
export function walkTables(groups: readonly Group[], { full }: { readonly full: boolean }): void {
  suite('tables', { skip, concurrency: 2 }, () => {
    for (const group of groups) {
      test(group.name, async (t) => {
        const context = contextOf(newest!, await namespaceOf(group.name.replaceAll(' ', '-')));
        for (const step of group.steps.filter((each) => full || !each.full)) {
          const tooOld = newest!.minor < (step.from ?? 0) && `kubectl 1.${step.from} is the first that can`;
          await t.test(step.run, { skip: tooOld }, () => runStep(step, context));
        }
      });
    }
  });
}

/** Goes the steps with the oldest kubectl that the tables are written for. */
export async function walkWithOldest(t: TestContext, steps: readonly Step[]): Promise<void> {
  const oldest = kubectls.find(({ minor }) => minor >= OLDEST)!;
  const context = contextOf(oldest, await namespaceOf(`v1-${oldest.minor}`));
  for (const step of steps) await t.test(step.run, () => runStep(step, context));
}
