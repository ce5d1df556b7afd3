/** An export through the API alone: a port of the Pod behind its Service, with the agent, the scheduler and kubectl themselves. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { PERSISTENT_VOLUME_CLAIMS, SECRETS } from '../../packages/apimachinery/src/types/resource-types.ts';
import type { PersistentVolumeClaim } from '../../packages/apimachinery/src/types/types.ts';
import { VIRTUAL_MACHINE_EXPORTS } from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { findKubectls, type RunningCommand, startKubectl } from '../compat/kubectl.ts';
import { adminOf, startProcess } from '../testkit/control-plane-process.ts';
import { eventually } from '../testkit/eventually.ts';
import { partly } from '../testkit/partly.ts';
import { whyNoGuests } from '../testkit/tiny-guest.ts';

const kubectls = findKubectls();
const why = kubectls.length === 0 ? 'there is no kubectl on this machine' : whyNoGuests();
const key = (name: string) => ({ namespace: 'default', name });

// S-1462: Who reaches the API alone downloads through a port of the Pod behind the Service, forwarded by kubectl; other ports of that
//   Pod lead nowhere.
test('an export is downloaded through a forwarded port', { timeout: 240_000, ...(why && { skip: why }) }, async (t) => {
  const data = mkdtempSync(join(tmpdir(), 'coracle-export-ports-'));
  const plane = await startProcess(data, { nodes: 1 });
  const admin = adminOf(data);
  const { client } = admin;
  const env = { HOME: data, PATH: process.env['PATH'] ?? '', KUBECONFIG: join(data, 'kubeconfig') };
  const forwarding = new Set<RunningCommand>();
  t.after(async () => {
    for (const one of forwarding) one.interrupt();
    await admin.close();
    await plane.kill('SIGKILL');
    rmSync(data, { recursive: true, force: true, maxRetries: 10 });
  });
  await client.create(
    PERSISTENT_VOLUME_CLAIMS,
    partly<PersistentVolumeClaim>({
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { ...key('disk'), annotations: { 'cdi.kubevirt.io/storage.contentType': 'kubevirt' } },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '4Mi' } } },
    }),
  );
  await client.create(VIRTUAL_MACHINE_EXPORTS, {
    apiVersion: 'export.kubevirt.io/v1',
    kind: 'VirtualMachineExport',
    metadata: key('e'),
    spec: { source: { apiGroup: '', kind: 'PersistentVolumeClaim', name: 'disk' } },
  });
  const { status } = await eventually('the export is ready', async () => {
    const found = await client.get(VIRTUAL_MACHINE_EXPORTS, key('e'));
    return found.status?.phase === 'Ready' ? found : undefined;
  });
  const secret = await client.get(SECRETS, key(status?.tokenSecretRef ?? ''));
  const token = Buffer.from(secret.data?.['token'] ?? '', 'base64').toString();
  const link = status?.links?.internal;
  const url = new URL(link?.volumes?.[0]?.formats?.find(({ format }) => format === 'raw')?.url ?? '');

  // The oldest speaks SPDY, the newest in a WebSocket.
  for (const kubectl of new Set([kubectls[0]!, kubectls.at(-1)!])) {
    const words = ['port-forward', '-n', 'default', 'service/virt-export-e', ':443'];
    const command = startKubectl(kubectl, words, { env, cwd: data });
    forwarding.add(command);
    const local = /127\.0\.0\.1:(\d+) -> 8443/;
    await command.saw(local);
    // As virtctl does it: the link of inside, with the address of the forwarded port in it.
    url.host = `127.0.0.1:${local.exec(command.stdout())?.[1]}`;
    const bytes = await new Promise<number>((resolve, reject) => {
      const headers = { 'x-kubevirt-export-token': token };
      const asked = request(url, { ca: link?.cert, headers, agent: false }, (response) => {
        let length = 0;
        response.on('data', (chunk: Buffer) => {
          length += chunk.length;
        });
        response.on('end', () => resolve(response.statusCode === 200 ? length : -(response.statusCode ?? 1)));
      });
      asked.on('error', reject);
      asked.end();
    });
    assert.equal(bytes, 4 * 1024 * 1024);
  }
  const command = startKubectl(kubectls.at(-1)!, ['port-forward', 'pod/virt-export-e', ':22'], { env, cwd: data });
  forwarding.add(command);
  const local = /127\.0\.0\.1:(\d+) -> 22/;
  await command.saw(local);
  await assert.rejects(fetch(`http://127.0.0.1:${local.exec(command.stdout())?.[1]}/`));
  command.interrupt();
  assert.match((await command.outcome).stderr, /nothing listens on port 22/);
});
