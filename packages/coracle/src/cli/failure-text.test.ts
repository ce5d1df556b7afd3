import assert from 'node:assert/strict';
import { test } from 'node:test';
import { unauthorized } from '../../../apimachinery/src/meta/status.ts';
import { fileProblem } from './command.ts';
import { failureText } from './failure-text.ts';

const at = { flags: { kubeconfig: '/k/config', 'data-dir': '/data' }, environment: {} };
const lost = (code: string, message: string): Error =>
  new Error(`Cannot send GET /api to https://h:1: ${message}`, {
    cause: new Error('cancelled', { cause: Object.assign(new Error(message), { code }) }),
  });

// S-1425: A command that does not reach the cluster, or is not known to it, names the kubeconfig that it used.
test('a failure of the way to the cluster names the kubeconfig', () => {
  const cases: readonly (readonly [error: unknown, wanted: RegExp])[] = [
    [lost('ECONNREFUSED', 'connect ECONNREFUSED h:1'), /h:1 \(according to \/k\/config; .*coracle up --detach/],
    [lost('SELF_SIGNED_CERT_IN_CHAIN', 'self-signed certificate'), /certificate \(according to \/k\/config\)$/],
    [unauthorized(), /^Unauthorized: .*credential of \/k\/config/],
    [new Error('Cannot send GET /api to https://h:1: too long'), /: too long$/],
    [
      Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' }),
      /^no space is left on the disk .*data directory is \/data\)$/,
    ],
    [
      Object.assign(new Error("EROFS: read-only file system, mkdir '/ro/x'"), { path: '/ro/x', syscall: 'mkdir' }),
      /^\/ro\/x: read-only file system \(another data directory: --data-dir DIR\)$/,
    ],
    [new Error('anything else'), /^anything else$/],
  ];
  for (const [error, wanted] of cases) assert.match(failureText(error, at), wanted);
});

test('a file that cannot be read is named once, without the words of the system', () => {
  const error = new Error("ENOENT: no such file or directory, open '/x'");
  assert.equal(fileProblem('/x', error), '/x: no such file or directory');
  const directory = Object.assign(new Error('EISDIR: illegal operation on a directory, read'), { code: 'EISDIR' });
  assert.equal(fileProblem('/x', directory), '/x is a directory');
  const file = Object.assign(new Error("EEXIST: file already exists, mkdir '/x'"), {
    code: 'EEXIST',
    syscall: 'mkdir',
  });
  assert.equal(fileProblem('/x', file), '/x is a file, no directory');
});
