/** `coracle controllers`: the controllers alone, against any cluster, each under its own service account. */
import { randomUUID } from 'node:crypto';
import { isIP } from 'node:net';
import { hostname } from 'node:os';
import type { ControllerEnvironment } from '@coracle/client/controller/environment';
import { whileLeading } from '@coracle/client/leader/leader-lease';
import { createGitOpsController } from '@coracle/gitops/sync/gitops-controller';
import { systemClock } from '@coracle/runtime/clock/clock';
import type { Logger } from '@coracle/runtime/log/log';
import { giveMemoryBack } from '@coracle/runtime/process/give-memory-back';
import {
  COMPONENT_NAMESPACE,
  chooseComponents,
  DELETION_WEBHOOK,
  GUARD_TRUSTED,
  keepRunning,
  runComponent,
} from '../compose/components.ts';
import type { ServeWebhook } from '../compose/deletion-webhook.ts';
import { connectAs, identifyServer } from '../compose/remote-components.ts';
import { webhookEndpoint } from '../compose/webhook-endpoint.ts';
import { clusterFrom } from '../config/cluster.ts';
import { type CommandContext, CommandError, failingAs, textFlag, UsageError } from './command.ts';
import { processLog } from './process-log.ts';
import { untilStopped } from './until-stopped.ts';

/** Runs until Ctrl-C or SIGTERM. On an external cluster several may be started: one of them runs each controller. */
export async function controllers(context: CommandContext): Promise<number> {
  const list = textFlag(context.flags, 'controllers') ?? '*';
  failingAs(UsageError, '', () => chooseComponents(list));
  const log = processLog(context.environment, systemClock);
  const cluster = await clusterFrom(context);
  const stop = untilStopped(context.signal);
  const clusterName = textFlag(context.flags, 'cluster-name');
  try {
    if (!cluster.ca)
      throw new CommandError(
        'the kubeconfig names no certificate authority; the controllers need one to publish kube-root-ca.crt',
      );
    const rootCa = cluster.ca;
    const { isOurs, lacks } = await identifyServer(cluster.client, stop.signal);
    const external = !isOurs;
    if (lacks !== undefined) context.note(`warning: ${lacks}`);
    const serveWebhook = webhooksAt(context, log);
    // Where nobody says how the API server reaches this process, it cannot ask.
    const chosen = chooseComponents(serveWebhook ? list : `${list},-${DELETION_WEBHOOK}`, { external });
    const identities = await Promise.all(
      chosen.map(({ account }) => connectAs(cluster, account, { clock: systemClock, log })),
    );
    const identity = `${hostname()}_${randomUUID()}`;
    const running = chosen.map((component, at) => {
      const { client } = identities[at]!;
      const options = {
        component,
        client,
        facts: {
          rootCa,
          createGitOps: (environment: ControllerEnvironment) =>
            // The embedded server guards declared fields itself.
            createGitOpsController({
              ...environment,
              onQuiet: giveMemoryBack,
              ...(clusterName !== undefined && { clusterName }),
              ...(serveWebhook && external && { serveWebhook: { trusted: GUARD_TRUSTED, serve: serveWebhook } }),
            }),
          ...(serveWebhook && { serveWebhook }),
        },
        clock: systemClock,
        log,
      };
      if (!external) return keepRunning({ ...options, signal: stop.signal });
      return whileLeading(
        {
          client,
          clock: systemClock,
          log,
          signal: stop.signal,
          lease: { namespace: COMPONENT_NAMESPACE, name: component.account },
          identity,
          onWaiting: (holder) => context.note(`${component.name} waits: ${holder} runs it`),
        },
        (signal) => runComponent({ ...options, signal }),
      );
    });
    context.print(`running ${chosen.map(({ name }) => name).join(', ')} against ${cluster.server}`);
    await Promise.all(running);
    await Promise.all(identities.map((identity) => identity.close()));
    return 0;
  } finally {
    stop.release();
    await cluster.close();
  }
}

/** Serves webhooks at `--webhook-address`; undefined without. @throws UsageError */
function webhooksAt(context: CommandContext, log: Logger): ServeWebhook | undefined {
  const address = textFlag(context.flags, 'webhook-address');
  const port = Number(textFlag(context.flags, 'webhook-port') ?? 0);
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    throw new UsageError('--webhook-port takes a number from 0 to 65535');
  if (address === undefined) {
    if (textFlag(context.flags, 'webhook-port') !== undefined)
      throw new UsageError('--webhook-port goes with --webhook-address');
    return undefined;
  }
  if (isIP(address) === 0) throw new UsageError('--webhook-address takes an IP address of this host');
  return webhookEndpoint({ address, port, clock: systemClock, log });
}
