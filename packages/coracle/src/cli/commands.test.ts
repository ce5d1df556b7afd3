import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Command, findCommand, readArguments } from './command.ts';
import { COMMANDS } from './commands.ts';

const leaves = (commands: readonly Command[]): readonly Command[] =>
  commands.flatMap((command) => (command.subcommands ? leaves(command.subcommands) : [command]));

/** The words behind `coracle` in a line of a shell, up to the first operator. */
const wordsOf = (line: string): string[] =>
  line
    .replace(/^.*?\bcoracle /, '')
    .split(/ (?:\||&&|>) |\)/)[0]!
    .match(/'[^']*'|\S+/g)!
    .map((word) => word.replaceAll("'", ''));

// S-1631: Each command, also below another one, has examples in its help, of commands and flags that there are; many flags stand
//   under heads.
test('every command has examples, and they are calls of it', () => {
  for (const command of leaves(COMMANDS)) {
    if (command.hidden) continue;
    assert.ok(command.examples?.length, `coracle ${command.name} has no example`);
    const called = command.examples.map((line) => {
      const found = findCommand(COMMANDS, wordsOf(line)) ?? assert.fail(line);
      readArguments(found.command, found.rest);
      return found.command.name;
    });
    assert.ok(called.includes(command.name), `coracle ${command.name}: ${called}`);
    const groups = new Set(Object.values(command.flags).map(({ group }) => group));
    assert.ok(Object.keys(command.flags).length <= 15 || groups.size > 2, `${command.name} has its flags in one heap`);
  }
});
