/** `coracle nomos status`: the syncs of each cluster in upstream's layout. */
import { systemClock } from '@coracle/runtime/clock/clock';
import { type CommandContext, textFlag, UsageError } from '../command.ts';
import { durationFlag } from '../duration-flag.ts';
import { type ClusterState, clusterState } from './cluster-state.ts';
import { askContexts, type ContextAnswer } from './contexts.ts';
import { statusText } from './status-text.ts';

const TIMEOUT_MS = 15_000;
const SHORTEST_POLL_MS = 100;

/** Runs once, or with `--poll` until it is interrupted. */
export async function status(context: CommandContext): Promise<number> {
  const { flags, print, signal } = context;
  const format = textFlag(flags, 'format') ?? 'text';
  if (format !== 'text' && format !== 'json')
    throw new UsageError(`--format takes text or json, not ${JSON.stringify(format)}`);
  const timeoutMs = durationFlag(flags, 'timeout', { or: TIMEOUT_MS, bareSeconds: true });
  const pollMs = durationFlag(flags, 'poll', { or: 0, bareSeconds: true });
  const filter = {
    namespace: textFlag(flags, 'namespace'),
    name: textFlag(flags, 'name'),
    resources: flags['resources'] !== false,
  };
  if (format === 'text') print('Connecting to clusters...');
  for (;;) {
    const answers = await askContexts(context, timeoutMs, ({ client }, linked) => clusterState(client, filter, linked));
    print(
      format === 'json'
        ? JSON.stringify(answers.map(jsonOf), undefined, 2)
        : `\n${statusText(answers, { history: flags['history'] === true })}`,
    );
    if (pollMs === 0) return 0;
    await systemClock.sleep(Math.max(pollMs, SHORTEST_POLL_MS), signal);
  }
}

function jsonOf({ name, isCurrent, answer }: ContextAnswer<ClusterState>): object {
  const base = { context: name, current: isCurrent };
  if ('error' in answer) return { ...base, status: 'N/A', error: answer.error };
  const state = answer.value;
  return state.type === 'nothing'
    ? { ...base, status: state.word, error: state.error }
    : { ...base, syncs: state.syncs };
}
