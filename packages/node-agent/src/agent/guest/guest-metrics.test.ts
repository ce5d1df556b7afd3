import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readLoad, readTraffic } from './guest-agent-facts.ts';
import { guestMetrics, type MeasuredGuest } from './guest-metrics.ts';
import { parseVcpu } from './guest-stats.ts';

const way = (bytes: number) => ({ bytes, packets: 2, errors: 0, dropped: 1 });
const GUEST: MeasuredGuest = {
  labels: { node: 'n', namespace: 'ns', name: 'a' },
  cards: new Map([['02:00:00:00:00:01', { name: 'default', network: 'pod networking' }]]),
  figures: {
    process: { cpuNanos: 3e9, userNanos: 2e9, systemNanos: 1e9, memoryBytes: 4096 },
    memoryBytes: 1024,
    balloon: { 'stat-free-memory': 12 },
    vcpus: [{ id: 0, seconds: 1.5, delaySeconds: 0.25 }],
    disks: [
      {
        name: 'root',
        stats: {
          ...{ rd_bytes: 1, wr_bytes: 2, rd_operations: 3, wr_operations: 4, flush_operations: 5 },
          ...{ rd_total_time_ns: 6e9, wr_total_time_ns: 7e9, flush_total_time_ns: 8e9 },
        },
      },
    ],
    cards: [
      { mac: '02:00:00:00:00:01', rx: way(10), tx: way(20) },
      { mac: '02:00:00:00:00:99', rx: way(1), tx: way(1) },
    ],
    filesystems: [1, 2].map((usedBytes) => ({
      ...{ diskName: 'vda1', mountPoint: '/', fileSystemType: 'ext4', usedBytes, totalBytes: 100 },
    })),
  },
};

test('guestMetrics() has upstream names, and no sample of what is not known', () => {
  const families = guestMetrics([GUEST]);
  const of = (name: string) =>
    families
      .find((family) => family.name === `kubevirt_vmi_${name}`)
      ?.samples.map(({ labels, value }) => [...Object.values(labels).slice(3), value]);
  assert.deepEqual(of('cpu_usage_seconds_total'), [[3]]);
  assert.deepEqual(of('vcpu_seconds_total'), [['0', 'running', 1.5]]);
  assert.deepEqual(of('vcpu_delay_seconds_total'), [['0', 0.25]]);
  assert.deepEqual(of('vcpu_wait_seconds_total'), []);
  assert.deepEqual(of('memory_unused_bytes'), [[12]]);
  assert.deepEqual(of('memory_actual_balloon_bytes'), []);
  assert.deepEqual(of('storage_flush_times_seconds_total'), [['root', 8]]);
  assert.deepEqual(of('filesystem_used_bytes'), [['vda1', '/', 'ext4', 2]], 'one series for one place');
  assert.deepEqual(
    of('network_receive_bytes_total'),
    [['default', 'pod networking', 10]],
    'not of cards it made itself',
  );
  assert.deepEqual(of('guest_load_1m'), []);
  for (const { name, type } of families) assert.equal(type, name.endsWith('_total') ? 'counter' : 'gauge', name);
});

test('parseVcpu() reads the files of a thread; what one of them does not say is left out', () => {
  const stat = `7 (CPU 0/KVM) S ${Array.from({ length: 10 }, () => 0).join(' ')} 150 50 0`;
  assert.deepEqual(
    parseVcpu(1, {
      stat,
      schedstat: '1000 2500000000 3\n',
      sched: 'x\nse.statistics.iowait_sum   :   1500.25\n',
      status: 'Name:\tx\nCpus_allowed_list:\t0-2,8\n',
    }),
    { id: 1, seconds: 2, delaySeconds: 2.5, waitSeconds: 1.50025, processors: 4 },
  );
  assert.deepEqual(parseVcpu(1, { stat, schedstat: '', sched: '', status: '' }), { id: 1, seconds: 2 });
  assert.equal(parseVcpu(1, { stat: '', schedstat: '', sched: '', status: '' }), undefined);
});

test('counters of cards and averages of load, as an agent gives them', () => {
  const statistics = {
    'rx-bytes': 1,
    'rx-packets': 2,
    'rx-errs': 3,
    'rx-dropped': 4,
    'tx-bytes': 5,
    'tx-packets': 'x',
  };
  assert.deepEqual(
    readTraffic([{ name: 'eth0', 'hardware-address': '02:AA:00:00:00:01', statistics }, { name: 'lo' }]),
    [
      {
        mac: '02:aa:00:00:00:01',
        rx: { bytes: 1, packets: 2, errors: 3, dropped: 4 },
        tx: { bytes: 5, packets: 0, errors: 0, dropped: 0 },
      },
    ],
  );
  assert.deepEqual(readLoad({ load1m: 0.5, load5m: 1, load15m: 2 }), {
    oneMinute: 0.5,
    fiveMinutes: 1,
    fifteenMinutes: 2,
  });
  assert.equal(readLoad(undefined), undefined);
});
