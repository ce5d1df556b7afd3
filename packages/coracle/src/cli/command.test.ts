import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import { test } from 'node:test';
import {
  type Command,
  commandGroup,
  commandHelp,
  findCommand,
  flagArguments,
  readArguments,
  switchFlag,
  UsageError,
  valueFlag,
} from './command.ts';

const load = async () => async () => 0;
const SUB: Command = {
  name: 'sub',
  summary: 'does it',
  flags: {
    on: { type: 'boolean', summary: '' },
    limit: { type: 'string', bare: '1000', value: 'N', summary: '' },
    name: { type: 'string', summary: '' },
  },
  load,
};
const COMMANDS = [commandGroup('group', 'has some', [SUB]), { ...SUB, name: 'alone' }];

for (const [argv, flags] of [
  [['--on'], { on: true }],
  [['--on=true'], { on: true }],
  [['--on=false'], { on: false }],
  [['--on', '--on=false'], { on: false }],
  [['--on=false', '--on'], { on: true }],
  [['--limit'], { limit: '1000' }],
  [['--limit=5'], { limit: '5' }],
  [['--limit', '--name', 'x'], { limit: '1000', name: 'x' }],
] as const)
  test(`readArguments() reads ${argv.join(' ')} as Go programs do`, () => {
    assert.deepEqual({ ...readArguments(SUB, argv).flags }, flags);
  });

for (const argv of [['--on=maybe'], ['--name'], ['--limit', '5'], ['--', '--limit']])
  test(`readArguments() refuses ${argv.join(' ')}`, () => {
    assert.throws(() => readArguments(SUB, argv), UsageError);
  });

// S-1677: `coracle ssh NAME COMMAND -f` gives the command its flags, as ssh does; those before it are coracle's own.
test('readArguments() leaves what stands behind the first word of another program to that', () => {
  const passing: Command = { ...SUB, words: 'NAME [COMMAND...]', passesOn: true };
  for (const [line, words, flags] of [
    ['web uname -n', ['web', 'uname', '-n'], {}],
    ['--name x web --on ls --on --name', ['web', 'ls', '--on', '--name'], { name: 'x', on: true }],
    ['web --limit ls -l', ['web', 'ls', '-l'], { limit: '1000' }],
    ['web -- ls --on', ['web', 'ls', '--on'], {}],
    ['web echo -- x', ['web', 'echo', '--', 'x'], {}],
    ['web --on', ['web'], { on: true }],
  ] as const) {
    const read = readArguments(passing, line.split(' '));
    assert.deepEqual([read.words, { ...read.flags }], [words, flags], line);
  }
  assert.throws(() => readArguments(passing, ['web', '--off']), UsageError);
});

test('flagArguments() says flags again, with paths as they are from here', () => {
  const flags: Command['flags'] = {
    on: switchFlag(''),
    off: switchFlag(''),
    file: valueFlag('FILE', ''),
    dir: valueFlag('DIR', '', { multiple: true }),
    list: valueFlag('LIST', '', { mayBeEmpty: true }),
    absent: valueFlag('N', ''),
  };
  const given = { on: true, off: false, file: 'a', dir: ['b', '/c'], list: '-d' };
  const words = flagArguments(flags, given);
  assert.deepEqual(words, ['--on', `--file=${resolve('a')}`, `--dir=${resolve('b')}`, '--dir=/c', '--list=-d']);
  const { off: _, ...rest } = given;
  const read = readArguments({ ...SUB, flags }, words).flags;
  assert.deepEqual({ ...read }, { ...rest, file: resolve('a'), dir: [resolve('b'), '/c'] });
  assert.deepEqual({ ...readArguments({ ...SUB, flags }, flagArguments(flags, { list: '' })).flags }, { list: '' });
});

test('a group hands on to the command that its first word names, which has flags and help of its own', async () => {
  const found = findCommand(COMMANDS, ['group', 'sub', '--on']);
  assert.deepEqual([found?.command.name, found?.rest], ['group sub', ['--on']]);
  assert.match(commandHelp(found!.command), /Usage: coracle group sub \[flags\]/);
  assert.match(commandHelp(COMMANDS[0]!), /Subcommands:\n {2}group sub {2}does it/);
  assert.deepEqual(findCommand(COMMANDS, ['alone', 'sub'])?.rest, ['sub']);
  assert.equal(findCommand(COMMANDS, ['sub']), undefined);
  for (const words of [[], ['other']]) {
    const group = findCommand(COMMANDS, ['group', ...words])!;
    assert.equal(group.command.name, 'group');
    const run = await group.command.load();
    await assert.rejects(run({} as never), /group takes: sub/);
  }
});
