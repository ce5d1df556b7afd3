import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '../../../../apimachinery/src/meta/status.ts';
import type { Client } from '../../../../client/src/client.ts';
import { NEVER } from '../../../../runtime/src/http/seam.ts';
import { guestTraffic } from './guest-traffic.ts';

const sample = (counter: string, name: string, value: string): string =>
  `kubevirt_vmi_${counter}_bytes_total{node="n",namespace="shop",name="${name}",kubernetes_vmi_label_a="{ }",drive="d"} ${value}`;

// S-1630: `coracle top` tells what each guest has read, written, received and sent, where its node counts it and may be asked.
test('what guests have moved is added up over their drives and cards, and left out where a node does not tell', async () => {
  const pages: Record<string, string> = {
    a: [
      '# TYPE kubevirt_vmi_storage_read_traffic_bytes_total counter',
      sample('storage_read_traffic', 'web', '100'),
      sample('storage_read_traffic', 'web', '1e+3'),
      sample('storage_write_traffic', 'web', '7'),
      sample('memory_resident', 'web', '5'),
    ].join('\n'),
    b: [sample('network_receive', 'db', '3'), sample('network_transmit', 'db', '4')].join('\n'),
  };
  const asked: string[] = [];
  const raw = async (_method: string, path: string): Promise<unknown> => {
    const node = /^\/api\/v1\/nodes\/(\w+)\/proxy\/metrics$/.exec(path)?.[1] ?? assert.fail(path);
    asked.push(node);
    return pages[node] ?? Promise.reject(new ApiError({ code: 403, reason: 'Forbidden', message: 'no' }));
  };
  const found = await guestTraffic({ raw } as Partial<Client> as Client, new Set(['a', 'b', 'c']), NEVER);
  assert.deepEqual(asked, ['a', 'b', 'c']);
  assert.deepEqual(
    [...found],
    [
      ['shop/web', { readBytes: 1100, writtenBytes: 7 }],
      ['shop/db', { receivedBytes: 3, sentBytes: 4 }],
    ],
  );
});
