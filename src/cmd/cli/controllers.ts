/** `coracle controllers`: the controllers alone, against any cluster, each under its own service account. */
import { systemClock } from '../../base/clock/clock.ts';
import { chooseComponents, runComponent } from '../compose/components.ts';
import { connectAs, isOurServer } from '../compose/remote-components.ts';
import { clusterFrom } from '../config/cluster.ts';
import { type CommandContext, CommandError, textFlag, UsageError } from './command.ts';
import { processLog } from './process-log.ts';
import { untilStopped } from './until-stopped.ts';

/** Runs until Ctrl-C or SIGTERM. */
export async function controllers(context: CommandContext): Promise<number> {
  const list = textFlag(context.flags, 'controllers') ?? '*';
  try {
    chooseComponents(list);
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
  const log = processLog(context.environment, systemClock);
  const cluster = await clusterFrom(context);
  const stop = untilStopped(context.signal);
  try {
    if (!cluster.ca)
      throw new CommandError(
        'the kubeconfig names no certificate authority; the controllers need one to publish kube-root-ca.crt',
      );
    const rootCa = cluster.ca;
    const chosen = chooseComponents(list, { abroad: !(await isOurServer(cluster.client, stop.signal)) });
    const identities = await Promise.all(
      chosen.map(({ account }) => connectAs(cluster, account, { clock: systemClock, log })),
    );
    const running = chosen.map((component, at) =>
      runComponent({
        component,
        client: identities[at]!.client,
        facts: { rootCa },
        clock: systemClock,
        log,
        signal: stop.signal,
      }),
    );
    context.print(`running ${chosen.map(({ name }) => name).join(', ')} against ${cluster.server}`);
    await Promise.all(running);
    await Promise.all(identities.map((identity) => identity.close()));
    return 0;
  } finally {
    stop.release();
    await cluster.close();
  }
}
