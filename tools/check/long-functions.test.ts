/**
 * No function of the packages is longer than 100 lines (`biome.json`). The files that are exempt from it each hold one that still
 * is: the list gets shorter, until it is gone.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { test } from 'node:test';

interface Override {
  readonly includes: readonly string[];
  readonly linter: { readonly rules: { readonly complexity: Readonly<Record<string, unknown>> } };
}

const root = resolve(import.meta.dirname, '../..');
const RULE = 'noExcessiveLinesPerFunction';
const { overrides, ...config } = JSON.parse(readFileSync(join(root, 'biome.json'), 'utf8')) as {
  readonly overrides: readonly Override[];
};
const isOff = ({ linter }: Override): boolean => linter.rules.complexity[RULE] === 'off';
const exempt = overrides.filter(isOff).flatMap(({ includes }) => includes);

/** Those of `files` in which the rule finds something. */
function withLongFunctions(files: readonly string[]): string[] {
  const directory = mkdtempSync(join(tmpdir(), 'coracle-long-functions-'));
  try {
    for (const file of files) cpSync(join(root, file), join(directory, file));
    const strict = { ...config, $schema: undefined, vcs: undefined, overrides: overrides.filter((one) => !isOff(one)) };
    writeFileSync(join(directory, 'biome.json'), JSON.stringify(strict));
    const argv = ['lint', '--max-diagnostics=none', '--reporter=github', '.'];
    const { stdout } = spawnSync(join(root, 'node_modules/.bin/biome'), argv, { cwd: directory, encoding: 'utf8' });
    const found = stdout.split('\n').filter((line) => line.includes(RULE));
    return files.filter((file) => found.some((line) => line.includes(`/${file},`)));
  } finally {
    rmSync(directory, { recursive: true });
  }
}

test('each file that is exempt holds a function of more than 100 lines', () => {
  assert.deepEqual(withLongFunctions(exempt), exempt);
});
