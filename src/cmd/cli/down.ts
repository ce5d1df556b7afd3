import { existsSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { parse } from 'yaml';
import { systemClock } from '../../base/clock/clock.ts';
import { signalProcess } from '../../base/process/identity.ts';
import { waitGone } from '../../base/process/terminate.ts';
import { dataDirAt, defaultDataDir } from '../config/data-dir.ts';
import { editUserKubeconfig, unmergeKubeconfig, userKubeconfigPath } from '../config/kubeconfig.ts';
import { findRunning } from '../config/running.ts';
import { stopRequestPath } from '../config/stop-request.ts';
import { writePrivateFile } from '../config/write-file.ts';
import { type CommandContext, CommandError, numberFlag, textFlag } from './command.ts';

/** Guests get their grace period; past this the command gives up waiting (the process goes on stopping). */
const STOP_S = 120;

/** `coracle down`. */
export async function down({ flags, environment, print, signal }: CommandContext): Promise<number> {
  const dir = dataDirAt(textFlag(flags, 'data-dir') ?? defaultDataDir(environment));
  const seconds = numberFlag(flags, 'timeout', { min: 1, max: 86_400, or: STOP_S });
  const running = await findRunning(dir);
  const asJson = flags['json'] === true;
  if (!running) {
    // One that was killed could not take its context out of the user's kubeconfig.
    forgetContext({ own: dir.kubeconfig, user: userKubeconfigPath(environment) });
    print(asJson ? JSON.stringify({ stopped: false }) : `nothing runs in ${dir.root}`);
    return 0;
  }
  const keepVms = flags['keep-vms'] === true;
  writePrivateFile(stopRequestPath(dir), JSON.stringify({ keepVms }));
  await signalProcess(running.process, 'SIGTERM');
  if (!(await waitGone(running.process, seconds * 1000, { clock: systemClock, signal })))
    throw new CommandError(`process ${running.process.pid} is still stopping after ${seconds} s; see ${dir.log}`);
  rmSync(stopRequestPath(dir), { force: true });
  print(
    asJson
      ? JSON.stringify({ stopped: true, pid: running.process.pid, keepVms })
      : `stopped${keepVms ? ' (VMs keep running)' : ''}`,
  );
  return 0;
}

/** Takes the context of this data directory's control plane out of the user's kubeconfig, if it is there and both can be read. */
function forgetContext({ own, user }: { readonly own: string; readonly user: string }): void {
  if (!existsSync(own) || !existsSync(user) || realpathSync(own) === realpathSync(user)) return;
  try {
    const { clusters } = parse(readFileSync(own, 'utf8')) as {
      clusters: [{ name: string; cluster: { server: string } }];
    };
    const [{ name, cluster }] = clusters;
    if (unmergeKubeconfig(readFileSync(user, 'utf8'), { name, server: cluster.server }) === readFileSync(user, 'utf8'))
      return;
    editUserKubeconfig(user, (text) => unmergeKubeconfig(text, { name, server: cluster.server }));
  } catch {
    // A kubeconfig that cannot be read or is being written is left as it is.
  }
}
