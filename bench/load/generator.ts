/** The load generator's process: takes loads over IPC, one at a time, and answers each with its result. */
import type { Load } from './load.ts';
import { runPaced } from './paced-load.ts';
import { runRequests } from './request-load.ts';
import { runWatch } from './watch-load.ts';

process.on('message', (load: Load) => {
  const running: Promise<unknown> =
    load.kind === 'requests' ? runRequests(load) : load.kind === 'watch' ? runWatch(load) : runPaced(load);
  running.then(
    (result) => process.send!({ result }),
    (error: unknown) => process.send!({ error: error instanceof Error ? error.message : String(error) }),
  );
});
process.on('disconnect', () => process.exit(0));
