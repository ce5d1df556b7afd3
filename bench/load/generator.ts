/** The load generator's process: takes loads over IPC, one at a time, and answers each with its result. */
import type { Load } from './load.ts';
import { runRequests } from './request-load.ts';
import { runWatch } from './watch-load.ts';

process.on('message', (load: Load) => {
  const running = load.kind === 'requests' ? runRequests(load) : runWatch(load);
  running.then(
    (result) => process.send!({ result }),
    (error: unknown) => process.send!({ error: error instanceof Error ? error.message : String(error) }),
  );
});
process.on('disconnect', () => process.exit(0));
