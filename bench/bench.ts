/**
 * Whole programs measured: `npm run bench [-- name ...]`. JSON to standard output, lines for people to standard error.
 * Everything runs on this machine's loopback, is bounded in count and time, and is stopped at the end.
 */
import { cpus } from 'node:os';
import { benchApi } from './api/api.ts';
import { benchBoot } from './boot.ts';
import { checkBudgets, resultLine } from './budgets.ts';
import { benchBurst } from './burst.ts';
import { benchCreate } from './create.ts';
import { benchExpand } from './expand-http.ts';
import { type BenchContext, type Figure, figureLine, type Outcome } from './figure.ts';
import { benchFork } from './fork.ts';
import { benchGitops } from './gitops.ts';
import { benchGuestNetwork } from './guest-network.ts';
import { benchImport } from './import.ts';
import { benchMachines } from './machines.ts';
import { benchMigration } from './migration.ts';
import { benchProtection } from './protection.ts';
import { benchScale } from './scale.ts';
import { benchStart } from './start.ts';
import { benchStorage } from './storage.ts';
import { benchTenGuests } from './ten-guests.ts';
import { benchVms } from './vms.ts';

const BENCHES: ReadonlyMap<string, (context: BenchContext) => Promise<Outcome>> = new Map([
  ['api', benchApi],
  ['start', benchStart],
  ['vms', benchVms],
  ['burst', benchBurst],
  ['boot', benchBoot],
  ['create', benchCreate],
  ['migration', benchMigration],
  ['fork', benchFork],
  ['guest-network', benchGuestNetwork],
  ['ten-guests', benchTenGuests],
  ['machines', benchMachines],
  ['storage', benchStorage],
  ['import', benchImport],
  ['scale', benchScale],
  ['expand', benchExpand],
  ['protection', benchProtection],
  ['gitops', benchGitops],
]);

const say = (line: string): void => void process.stderr.write(`${line}\n`);

async function main(names: readonly string[]): Promise<number> {
  const unknown = names.find((name) => !BENCHES.has(name));
  if (unknown !== undefined) {
    say(`bench: no bench "${unknown}"; there are ${[...BENCHES.keys()].join(', ')}`);
    return 2;
  }
  const began = performance.now();
  const outcomes: Record<string, Outcome> = {};
  const figures: Record<string, Figure> = {};
  for (const name of names.length > 0 ? names : BENCHES.keys()) {
    say(`${name}:`);
    const outcome = await BENCHES.get(name)!({ say: (line) => say(`  ${line}`) });
    outcomes[name] = outcome;
    if (outcome.state === 'skipped') {
      say(`  skipped: ${outcome.reason}`);
      continue;
    }
    for (const [figure, value] of Object.entries(outcome.figures)) {
      figures[figure] = value;
      say(figureLine(figure, value));
    }
  }
  const budgets = checkBudgets(figures);
  say('budgets:');
  for (const result of budgets) say(resultLine(result));
  const machine = { node: process.version, cpus: cpus().length, model: cpus()[0]?.model ?? '' };
  const seconds = Math.round((performance.now() - began) / 100) / 10;
  process.stdout.write(`${JSON.stringify({ machine, seconds, benches: outcomes, budgets }, null, 2)}\n`);
  return 0;
}

process.exitCode = await main(process.argv.slice(2));
