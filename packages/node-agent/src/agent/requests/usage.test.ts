import assert from 'node:assert/strict';
import { test } from 'node:test';
import { identify } from '../../../../runtime/src/process/identity.ts';
import { diskUsage, hostUsage, parseHost, parseProcess, processUsage } from './usage.ts';

test('the host: all processors but for idle and waiting, memory but for what can be had back', () => {
  const stat = 'cpu  10 1 20 7000 300 2 3 4 5 6\ncpu0 5 0 10 1 1 1 1 1 1 1\nbtime 1700000000\n';
  const memory = 'MemTotal:        1000 kB\nMemFree:          100 kB\nMemAvailable:     400 kB\n';
  assert.deepEqual(parseHost(stat, memory), {
    cpuNanos: 40 * 10_000_000,
    memoryBytes: 600 * 1024,
    availableBytes: 400 * 1024,
    bootedAt: 1_700_000_000_000,
  });
  assert.equal(parseHost(stat, ''), undefined);
  assert.equal(parseHost('', memory), undefined);
});

test('a process, whatever it is called', () => {
  const text = `7 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0 1 0 4242 99999 25 1 1\n`;
  assert.deepEqual(parseProcess(text), {
    cpuNanos: 2_000_000_000,
    userNanos: 1_500_000_000,
    systemNanos: 500_000_000,
    memoryBytes: 25 * 4096,
    startTime: '4242',
  });
  assert.equal(parseProcess('7 (a) S 1'), undefined);
});

test('this process and this host, and no process that was another', async () => {
  const own = (await identify(process.pid))!;
  const usage = (await processUsage(own))!;
  assert.ok(usage.memoryBytes > 1_000_000 && usage.cpuNanos >= 0);
  assert.equal(await processUsage({ ...own, startTime: '1' }), undefined);
  const host = (await hostUsage())!;
  assert.ok(host.memoryBytes > usage.memoryBytes && host.bootedAt < Date.now());
  assert.ok((await diskUsage('/'))!.capacityBytes > 0);
  assert.equal(await diskUsage('/nowhere'), undefined);
});
