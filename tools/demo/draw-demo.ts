/** `sh tools/setup/run.sh tools/demo/draw-demo.ts`: runs `npm run demo -- --once` and draws what it showed, in docs/demo.svg. */
import { spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { terminalLines, terminalPicture } from './terminal-picture.ts';

const COMMAND = 'npm run demo -- --once';
/** Of a long boot the beginning and the end are shown. */
const FIRST_LINES = 6;
const LAST_LINES = 20;
const WITHIN_MS = 300_000;

const root = resolve(import.meta.dirname, '../..');
const home = mkdtempSync(join(tmpdir(), 'coracle-draw-'));
const transcript = join(home, 'transcript');
try {
  // Both ways of its output go to one place, as in a terminal.
  const file = openSync(transcript, 'w');
  const { status } = spawnSync(process.execPath, [join(root, 'tools/demo/demo.ts'), '--once'], {
    timeout: WITHIN_MS,
    stdio: ['ignore', file, file],
  });
  closeSync(file);
  const output = readFileSync(transcript, 'utf8');
  if (status !== 0) throw new Error(`the demo failed (${status}): ${output.slice(-2000)}`);
  writeFileSync(join(root, 'docs/demo.svg'), terminalPicture([`$ ${COMMAND}`, ...shownOf(output)], COMMAND));
} finally {
  rmSync(home, { recursive: true });
}

function shownOf(output: string): string[] {
  // The directory of the demo has another name each time.
  const directory = new RegExp(`${RegExp.escape(join(tmpdir(), 'coracle-demo-'))}\\w+`, 'g');
  const lines = terminalLines(output)
    .filter((line) => !line.startsWith('set-up: '))
    .map((line) => line.replaceAll(directory, '/tmp/coracle-demo'));
  if (lines.length <= FIRST_LINES + LAST_LINES + 1) return lines;
  return [...lines.slice(0, FIRST_LINES), '…', ...lines.slice(-LAST_LINES)];
}
