/** The port of an exporter Pod: it leads to the server of exports, where the cluster itself says that is, and nowhere else. */
import { isNotFound } from '@coracle/client/api-failure';
import type { Client } from '@coracle/client/client';
import { CDI_CONFIGS } from '@coracle/kubevirt/kinds/kinds';
import { EXPORTER_PORT } from '@coracle/kubevirt/rules/export/exporter-pod';
import type { ForwardTarget } from './pod-port-forward.ts';

const CONFIG = { namespace: '', name: 'config' };
const NOT_SERVED = 'the cluster has no server of exports';

/** Finds the server for each connection anew: it may have moved. No address out of a Pod is dialled. */
export const exporterEndpoint =
  (client: Client): ForwardTarget['endpoint'] =>
  async (port) => {
    if (port !== EXPORTER_PORT) throw new Error(`nothing listens on port ${port}: exports are on ${EXPORTER_PORT}`);
    const config = await client.get(CDI_CONFIGS, CONFIG).catch((error: unknown) => {
      throw isNotFound(error) ? new Error(NOT_SERVED) : error;
    });
    const url = URL.parse(config.status?.uploadProxyURL ?? '');
    if (!url) throw new Error(NOT_SERVED);
    return { host: url.hostname.replace(/^\[|\]$/g, ''), port: Number(url.port || 443) };
  };
