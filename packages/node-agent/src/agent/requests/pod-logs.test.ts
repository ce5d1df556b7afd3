import assert from 'node:assert/strict';
import { appendFileSync, mkdtempSync, rmSync, truncateSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { createFakeClock } from '../../../../runtime/src/clock/fake-clock.fixture.ts';
import type { ApiResponse, ByteSink } from '../../../../runtime/src/http/seam.ts';
import { keepLogs, logResponse, readLogOptions } from './pod-logs.ts';

let directory = '';
before(() => {
  directory = mkdtempSync(join(tmpdir(), 'coracle-logs-'));
});
after(() => rmSync(directory, { recursive: true }));

const NOW = Date.UTC(2030, 0, 1);
const ask = (query: string, more: object = {}, clock = createFakeClock(NOW)) =>
  logResponse(
    { pod: 'p', container: 'compute', directory, kept: undefined, ended: () => false, ...more },
    readLogOptions(query, NOW),
    { clock },
  );
const textOf = ({ body }: ApiResponse): string => Buffer.from(body as Uint8Array).toString();
const write = (file: string, text: string, secondsAgo = 0): void => {
  writeFileSync(join(directory, file), text);
  const at = NOW / 1000 - secondsAgo;
  utimesSync(join(directory, file), at, at);
};

test('logResponse() shows the part that is asked for', async (t) => {
  write('qemu.log', 'one\ntwo\n2029-12-31T23:59:00.5Z three\nfour\n', 30);
  const cases: [string, string][] = [
    ['', 'one\ntwo\n2029-12-31T23:59:00.5Z three\nfour\n'],
    ['tailLines=1', 'four\n'],
    ['tailLines=0', ''],
    ['limitBytes=5', 'one\nt'],
    ['tailLines=2&timestamps=true', '2029-12-31T23:59:00.5Z three\n2029-12-31T23:59:30.000Z four\n'],
    ['sinceSeconds=45', 'one\ntwo\nfour\n'],
    ['sinceSeconds=10', ''],
    ['sinceTime=2029-12-31T23:58:00Z', 'one\ntwo\n2029-12-31T23:59:00.5Z three\nfour\n'],
  ];
  for (const [query, wanted] of cases) {
    await t.test(query || 'all', async () => assert.equal(textOf(await ask(query)), wanted));
  }
});

test('the serial line is a log of its own, its older part first', async () => {
  write('serial.log.1', 'before\n');
  write('serial.log', 'login: ');
  assert.equal(textOf(await ask('', { container: 'guest-console-log' })), 'before\nlogin: ');
  assert.equal(textOf(await ask('tailLines=1', { container: 'guest-console-log' })), 'login: ');
});

test('what cannot be shown is said in words', async () => {
  const refused = (query: string, more: object, message: RegExp) =>
    assert.rejects(async () => ask(query, more), message);
  await refused('previous=true', {}, /previous terminated container "compute" in pod "p" not found/);
  await refused('', { directory: undefined }, /container "compute" in pod "p" is waiting to start: ContainerCreating/);
  await refused('', { container: 'volumeroot' }, /it writes no log here/);
  await refused('tailLines=-1', {}, /tailLines/);
  await refused('sinceTime=yesterday', {}, /RFC 3339/);
});

test('what a guest said last is kept when its files go', async () => {
  write('qemu.log', 'the end\n');
  const kept = await keepLogs(directory);
  assert.equal(textOf(await ask('follow=true', { kept, directory: undefined })), 'the end\n');
});

test('following shows what is added, goes on behind a cut, and ends with the guest', async () => {
  write('qemu.log', 'a\n');
  const clock = createFakeClock(NOW);
  let over = false;
  const { body } = await ask('follow=true', { ended: () => over }, clock);
  const seen: string[] = [];
  let finish = (): void => {};
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const sink: ByteSink = {
    buffered: 0,
    signal: new AbortController().signal,
    drained: () => Promise.resolve(),
    write(chunk) {
      seen.push(Buffer.from(chunk).toString());
      return true;
    },
    end: finish,
  };
  (body as (sink: ByteSink) => void)(sink);
  const saw = async (text: string): Promise<void> => {
    while (!seen.join('').endsWith(text)) {
      await clock.advance(250);
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  await saw('a\n');
  appendFileSync(join(directory, 'qemu.log'), 'b\n');
  await saw('b\n');
  truncateSync(join(directory, 'qemu.log'), 0);
  await clock.advance(250);
  await new Promise((resolve) => setTimeout(resolve, 20));
  await clock.advance(250);
  appendFileSync(join(directory, 'qemu.log'), 'c\n');
  await saw('c\n');
  over = true;
  const ticking = setInterval(() => void clock.advance(250), 1);
  await finished;
  clearInterval(ticking);
  assert.equal(seen.join(''), 'a\nb\nc\n');
});
