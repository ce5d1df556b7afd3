import assert from 'node:assert/strict';
import { test } from 'node:test';
import { UsageError } from '../command.ts';
import { readPlace } from './cp.ts';
import { readPorts } from './port-forward.ts';
import { sshArguments } from './ssh-arguments.ts';

test('every word of the proxy command is quoted for the shell that ssh gives it to', () => {
  const options = sshArguments({
    user: 'me',
    hostKeyAlias: 'uid',
    knownHosts: '/a b/50%/known',
    proxy: ['/bin/node', '--data-dir', "/it's; $(rm) 100%", 'vm/web'],
    identities: ['/k'],
    more: ['ForwardAgent=yes'],
  });
  assert.deepEqual(options.slice(0, 6), ['-o', 'ForwardAgent=yes', '-i', '/k', '-o', 'User=me']);
  assert.ok(options.includes(`ProxyCommand=/bin/node --data-dir '/it'\\''s; $(rm) 100%%' vm/web`));
  assert.ok(options.includes('UserKnownHostsFile="/a b/50%%/known"'));
  assert.ok(options.includes('HostKeyAlias=uid'));
});

test('a word of cp names a file here, or a machine and a path in it', () => {
  for (const [word, machine, user, path] of [
    ['web:', 'web', undefined, ''],
    ['web:/var/log', 'web', undefined, '/var/log'],
    ['root@web.shop:a:b', 'web.shop', 'root', 'a:b'],
    ['vm/web:x', 'vm/web', undefined, 'x'],
    ['./web:x', undefined, undefined, './web:x'],
    ['/tmp/web:x', undefined, undefined, '/tmp/web:x'],
    ['dir/file', undefined, undefined, 'dir/file'],
    ['plain', undefined, undefined, 'plain'],
  ] as const)
    assert.deepEqual(readPlace(word), { machine, user, path }, word);
});

test('ports are read as virtctl reads them', () => {
  assert.deepEqual(readPorts('80'), { local: 80, guest: 80 });
  assert.deepEqual(readPorts('8080:80'), { local: 8080, guest: 80 });
  assert.deepEqual(readPorts(':80'), { local: 0, guest: 80 });
  for (const text of ['', 'x', '80:', '0', '65536', '65536:1', '1:2:3', '-1'])
    assert.throws(() => readPorts(text), UsageError, text);
});
