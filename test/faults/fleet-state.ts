/** What the API of a fleet says of everything a drain waits for, and what its guests wrote, as text for a failure's message. */
import { readFileSync } from 'node:fs';
import { EVENTS, PODS } from '../../packages/apimachinery/src/types/resource-types.ts';
import type { Client } from '../../packages/client/src/client.ts';
import {
  VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
  VIRTUAL_MACHINE_INSTANCES,
} from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { parseProcess } from '../../packages/node-agent/src/agent/requests/usage.ts';
import { qemusUnder } from './migration-failpoints.ts';

/** The newest events are shown. */
const MAX_EVENTS = 60;
/** Characters of a guest's serial line that are shown. */
const MAX_SERIAL = 1500;

/** Instances, migrations, Pods and the newest events, one a line. Never rejects. */
export async function fleetState(client: Client): Promise<string> {
  const section = async (what: string, lines: () => Promise<readonly unknown[]>): Promise<string[]> => {
    try {
      return (await lines()).map((line) => `${what} ${JSON.stringify(line)}`);
    } catch (error) {
      return [`${what} not known: ${(error as Error).message}`];
    }
  };
  const of = { namespace: 'default' };
  const all = await Promise.all([
    section('vmi', async () =>
      (await client.list(VIRTUAL_MACHINE_INSTANCES, of)).items.map(({ metadata, status }) => ({
        name: metadata.name,
        uid: metadata.uid,
        labels: metadata.labels,
        annotations: metadata.annotations,
        deleting: metadata.deletionTimestamp,
        phase: status?.phase,
        node: status?.nodeName,
        marked: status?.evacuationNodeName,
        activePods: status?.activePods,
        conditions: status?.conditions?.map(({ type, status: is, message }) => `${type}=${is} ${message ?? ''}`),
        migration: status?.migrationState,
      })),
    ),
    section('vmim', async () =>
      (await client.list(VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, of)).items.map(({ metadata, spec, status }) => ({
        name: metadata.name,
        uid: metadata.uid,
        made: metadata.creationTimestamp,
        deleting: metadata.deletionTimestamp,
        of: spec.vmiName,
        evacuates: metadata.annotations?.['kubevirt.io/evacuationMigration'],
        phases: status?.phaseTransitionTimestamps?.map((at) => `${at.phase} ${at.phaseTransitionTimestamp}`),
        reason: status?.migrationState?.failureReason,
      })),
    ),
    section('pod', async () =>
      (await client.list(PODS, of)).items.map(({ metadata, spec, status }) => ({
        name: metadata.name,
        uid: metadata.uid,
        made: metadata.creationTimestamp,
        deleting: metadata.deletionTimestamp,
        job: metadata.labels?.['kubevirt.io/migrationJobUID'],
        node: spec.nodeName,
        phase: status?.phase,
        conditions: status?.conditions?.map(({ type, status: is, message }) => `${type}=${is} ${message ?? ''}`),
        containers: status?.containerStatuses?.map(({ state }) => state),
      })),
    ),
    section('event', async () =>
      (await client.list(EVENTS, of)).items
        .slice(-MAX_EVENTS)
        .map((event) => [event['lastTimestamp'], event['count'], event['reason'], event['message']]),
    ),
  ]);
  return all.flat().join('\n');
}

/** Of every QEMU under `dir`: the processor time it has used, and the end of its guest's serial line. */
export function guestState(dir: string): string {
  const section = (path: string, of: (text: string) => string): string => {
    try {
      return of(readFileSync(path, 'latin1'));
    } catch (error) {
      return (error as Error).message;
    }
  };
  return qemusUnder(dir)
    .map(({ pid, uid, node }) => {
      const used = section(`/proc/${pid}/stat`, (text) => `${(parseProcess(text)?.cpuNanos ?? Number.NaN) / 1e9} s`);
      const line = section(`/proc/${pid}/cwd/serial.log`, (text) => JSON.stringify(text.slice(-MAX_SERIAL)));
      return `qemu ${pid} of ${uid} on ${node} used ${used} of processor time; its serial line: ${line}`;
    })
    .join('\n');
}
