/** An export as guests see it: by the internal link of its status, from each node. */
// test:full: boots two guests
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { CONFIG_MAPS, PODS, SECRETS } from '../../packages/apimachinery/src/types/resource-types.ts';
import { DATA_VOLUMES } from '../../packages/kubevirt/src/kinds/kinds.ts';
import { VIRTUAL_MACHINE_EXPORTS, VIRTUAL_MACHINES } from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import {
  FORWARDED_PORTS_ANNOTATION,
  type PublishedPort,
} from '../../packages/kubevirt/src/rules/machine/host-ports.ts';
import { findProcesses } from '../../packages/runtime/src/process/identity.ts';
import { adminOf, startProcess } from '../testkit/control-plane-process.ts';
import { eventually } from '../testkit/eventually.ts';
import { byKernel, importTinyGuest, tinyVm, whyNoGuests } from '../testkit/tiny-guest.ts';

const why = whyNoGuests();
const namespace = 'default';
const key = (name: string) => ({ namespace, name });
const MAIN = resolve(import.meta.dirname, '../../packages/coracle/src/main.ts');
const BOOTED_MS = 120_000;
const sha = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
const IMAGE = Buffer.concat([randomBytes(20 * 1024 * 1024), Buffer.alloc(4 * 1024 * 1024)]);
/** The guest's TCP is the kernel's; TLS is this process's, whose bytes it passes on. */
const RELAY = `#!/bin/sh
while :; do nc -l -p 7000 -e nc virt-export-e.default.svc 443; done
`;

/** What a link leads to from inside a guest, whose port passes it on. */
async function download(
  url: URL,
  at: { readonly host: string; readonly port: number },
  { ca, token }: { readonly ca: string; readonly token: string },
): Promise<{ readonly status: number; readonly body: Buffer }> {
  const asked = request({
    ...at,
    path: url.pathname,
    // The certificate has to be for the name in the link.
    servername: url.hostname,
    ca,
    agent: false,
    headers: { host: url.host, 'x-kubevirt-export-token': token },
  });
  asked.end();
  const [response] = await once(asked, 'response');
  const parts: Buffer[] = [];
  for await (const part of response) parts.push(part);
  return { status: response.statusCode, body: Buffer.concat(parts) };
}

// S-1582: A guest on any node downloads an export by the internal link of its status, with the token and the authority that the
//   status names: by the name of the Service, byte for byte. A DataVolume that names the link is filled.
test('guests of each node, and a DataVolume, take an export by its internal link', {
  timeout: 480_000,
  ...(why && { skip: why }),
}, async (t) => {
  const data = mkdtempSync(join(tmpdir(), 'coracle-exports-inside-'));
  await importTinyGuest(data);
  const plane = await startProcess(data, { nodes: 2 });
  const admin = adminOf(data);
  const { client } = admin;
  t.after(async () => {
    await admin.close();
    await plane.kill('SIGKILL');
    const ours = await findProcesses((argv) => argv.some((word) => word.includes(data)));
    for (const pid of ours) process.kill(pid, 'SIGKILL');
    rmSync(data, { recursive: true, force: true, maxRetries: 10 });
  });
  const file = join(data, 'source.img');
  writeFileSync(file, IMAGE);
  const uploaded = spawn(process.execPath, [MAIN, 'upload', '--data-dir', data, 'disk', file]);
  assert.deepEqual(await once(uploaded, 'exit'), [0, null]);
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
  const linkTo = (format: string): string =>
    link?.volumes?.[0]?.formats?.find((one) => one.format === format)?.url ?? '';
  const url = new URL(linkTo('raw'));
  assert.equal(url.host, 'virt-export-e.default.svc');

  const places = new Set<string>();
  for (const name of ['a', 'b']) {
    const vm = tinyVm(name, (made) => {
      byKernel(made);
      const { domain, volumes } = made.spec.template.spec!;
      domain.devices.interfaces![0]!.ports = [{ port: 7000 }];
      volumes!.find((one) => one.cloudInitNoCloud)!.cloudInitNoCloud = { userData: RELAY };
      // Each on a node of its own.
      made.spec.template.spec!.affinity = {
        podAntiAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: [
            { labelSelector: { matchLabels: { app: 'tiny' } }, topologyKey: 'kubernetes.io/hostname' },
          ],
        },
      };
    });
    await client.create(VIRTUAL_MACHINES, vm);
  }
  for (const name of ['a', 'b']) {
    const at = await eventually(
      `${name} has its port`,
      async () => {
        const { items } = await client.list(PODS, { namespace, labelSelector: `vm.kubevirt.io/name=${name}` });
        const text = items[0]?.metadata.annotations?.[FORWARDED_PORTS_ANNOTATION] ?? '[]';
        places.add(items[0]?.spec.nodeName ?? '');
        return (JSON.parse(text) as PublishedPort[]).find(({ containerPort }) => containerPort === 7000);
      },
      BOOTED_MS,
    );
    const how = { ca: link?.cert ?? '', token };
    // Until somebody listens in the guest.
    const { body } = await eventually(
      `${name} has the disk`,
      () => download(url, { host: at.hostIP, port: at.hostPort }, how).catch(() => undefined),
      BOOTED_MS,
    );
    assert.equal(sha(body), sha(IMAGE));
    assert.equal(
      (await download(url, { host: at.hostIP, port: at.hostPort }, { ...how, token: 'another' })).status,
      401,
    );
  }
  places.delete('');
  assert.equal(places.size, 2);

  await client.create(SECRETS, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: key('header'),
    stringData: { token: `x-kubevirt-export-token: ${token}` },
  });
  await client.create(CONFIG_MAPS, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: key('ca'),
    data: { 'ca.pem': link?.cert ?? '' },
  });
  await client.create(DATA_VOLUMES, {
    apiVersion: 'cdi.kubevirt.io/v1beta1',
    kind: 'DataVolume',
    metadata: { ...key('copy'), annotations: { 'cdi.kubevirt.io/storage.bind.immediate.requested': 'true' } },
    spec: {
      source: { http: { url: linkTo('gzip'), certConfigMap: 'ca', secretExtraHeaders: ['header'] } },
      storage: { resources: { requests: { storage: '32Mi' } } },
    },
  });
  await eventually(
    'the DataVolume is filled',
    async () => {
      const found = await client.get(DATA_VOLUMES, key('copy'));
      return found.status?.phase === 'Succeeded';
    },
    BOOTED_MS,
  );
});
