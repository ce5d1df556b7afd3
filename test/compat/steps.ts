/** The notation of the tables: commands in order, each with what it prints and how it ends. */
import assert from 'node:assert/strict';
import { type Kubectl, type Outcome, type RunOptions, runKubectl, startKubectl } from './kubectl.ts';

/**
 * Texts are compared line by line with columns one gap apart (two blanks) and these wildcards: `<age>`, `<time>`,
 * `<uuid>`, `<n>`, `<...>` (rest of the line, also nothing), `<from>` (the namespace newer versions name after
 * `deleted`), and a line `<lines>` for any lines. `{ns}` is the group's namespace.
 */
export interface Step {
  /** The words after `kubectl`; single quotes hold words together. */
  readonly run: string;
  /** Standard input, for `-f -`. */
  readonly input?: string;
  /** Absent = nothing. */
  readonly out?: string;
  readonly err?: string;
  readonly code?: number;
  readonly env?: Readonly<Record<string, string>>;
  /** First minor version of kubectl that can do this. */
  readonly from?: number;
  /** Only in `npm run test:full`: another way to print or ask for what a step beside it has had from the server. */
  readonly full?: true;
  /** Runs beside these steps. They begin when `after` stands on its output, at once without it. */
  readonly meanwhile?: readonly Step[];
  readonly after?: RegExp;
  /** Interrupted when this stands on its output: for watches, which do not end. */
  readonly until?: RegExp;
}

export interface Group {
  readonly name: string;
  readonly steps: readonly Step[];
}

export interface StepContext {
  readonly kubectl: Kubectl;
  readonly namespace: string;
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
}

/** Runs one step and checks it. */
export async function runStep(step: Step, context: StepContext): Promise<void> {
  const { kubectl } = context;
  const args = argumentsOf(step, context);
  const options: RunOptions = {
    env: { ...context.env, ...step.env },
    cwd: context.cwd,
    ...(step.input !== undefined && { input: step.input.replaceAll('{ns}', context.namespace) }),
  };
  if (step.meanwhile === undefined && step.until === undefined) {
    check(step, { outcome: await runKubectl(kubectl, args, options), context });
    return;
  }
  const running = startKubectl(kubectl, args, options);
  if (step.after) await running.saw(step.after);
  for (const inner of step.meanwhile ?? []) await runStep(inner, context);
  if (step.until) {
    await running.saw(step.until);
    running.interrupt();
  }
  check(step, { outcome: await running.outcome, context });
}

/** The namespace goes behind the verb: some kubectls on PATH refuse flags before it. */
function argumentsOf(step: Step, { namespace }: StepContext): string[] {
  const words = splitWords(step.run.replaceAll('{ns}', namespace));
  return [words[0]!, `--namespace=${namespace}`, ...words.slice(1)];
}

/** `a 'b c' d='e f'` -> [a, b c, d=e f]. */
export function splitWords(text: string): string[] {
  return [...text.matchAll(/(?:'[^']*'|[^\s'])+/g)].map(([word]) => word.replaceAll("'", ''));
}

function check(step: Step, { outcome, context }: { readonly outcome: Outcome; readonly context: StepContext }): void {
  const shown = `$ kubectl ${step.run}\n${outcome.stdout}${outcome.stderr}[exit ${outcome.code}]`;
  const stopped = step.until !== undefined;
  if (!stopped) assert.equal(outcome.code, step.code ?? 0, shown);
  compare(outcome.stdout, step.out ?? '', { shown, context });
  if (!stopped) compare(outcome.stderr, step.err ?? '', { shown, context });
}

function compare(
  actual: string,
  wanted: string,
  { shown, context }: { readonly shown: string; readonly context: StepContext },
): void {
  const text = normal(actual);
  const pattern = normal(wanted.replaceAll('{ns}', context.namespace));
  if (toRegExp(pattern).test(text)) return;
  assert.equal(text, pattern, shown);
  assert.fail(shown);
}

const normal = (text: string): string =>
  text
    .split('\n')
    .map((line) => line.replace(/(\S)[ \t]{2,}|(\S)\t/g, '$1$2  ').trimEnd())
    .join('\n')
    .replace(/^\n+|\n+$/g, '');

const WILDCARDS: Readonly<Record<string, string>> = {
  '<age>': '(?:<invalid>|[0-9]+[smhd](?:[0-9]+[smhd])?)',
  '<time>': '[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z',
  '<uuid>': '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}',
  '<n>': '[0-9]+',
  '<...>': '.*',
  '<from>': '(?: from \\S+ namespace)?',
  '<lines>': '[^]*',
};

function toRegExp(pattern: string): RegExp {
  const parts = pattern.split(/(<(?:age|time|uuid|n|\.\.\.|from|lines)>)/);
  const source = parts.map((part) => WILDCARDS[part] ?? part.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&')).join('');
  return new RegExp(`^${source}$`);
}
