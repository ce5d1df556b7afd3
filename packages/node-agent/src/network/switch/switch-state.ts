/** What the agent tells the switch of its node: whole at each change, as one line of JSON. */

/** A Pod that has an address on the network of Pods. */
export interface NetworkPod {
  readonly address: string;
  /** Where it may be: two while its guest moves. */
  readonly nodes: readonly string[];
  /** Places in `rules` of what may come in, and go out; absent: everything may. */
  readonly ingress?: readonly number[];
  readonly egress?: readonly number[];
}

/** What a NetworkPolicy lets pass, of one of its rules. */
export interface NetworkRule {
  /** The Pods at the other end. */
  readonly addresses?: readonly string[];
  readonly blocks?: readonly { readonly cidr: string; readonly except: readonly string[] }[];
  /** Everybody, instead of those. */
  readonly anybody?: boolean;
  /** Of the Pod that is spoken to; absent: all, of any protocol. */
  readonly ports?: readonly { readonly protocol: 'tcp' | 'udp' | 'sctp'; readonly from: number; readonly to: number }[];
}

export interface ServiceTarget {
  readonly address: string;
  readonly port: number;
}

export interface NetworkService {
  /** ClusterIP. */
  readonly address: string;
  readonly protocol: 'tcp' | 'udp';
  readonly port: number;
  /** `sessionAffinity: ClientIP`. */
  readonly sticky: boolean;
  /** Endpoints that are ready. */
  readonly targets: readonly ServiceTarget[];
}

/** A guest of this node that is here and nowhere else: it runs, or would if nobody had paused it. */
export interface LocalGuest {
  readonly address: string;
  /** ms since the epoch: of two nodes that have the guest, as in the moment of its move, the later one counts. */
  readonly since: number;
}

/** An endpoint behind a port of this host. */
export interface ListenerTarget extends ServiceTarget {
  /** The node of the Pod. */
  readonly node: string;
  /** Where the port of the guest is forwarded, where that is on this host. */
  readonly at?: { readonly host: string; readonly port: number };
}

/** A port of this host that stands for a Service. */
export interface NetworkListener {
  readonly protocol: 'tcp' | 'udp';
  readonly host: string;
  readonly port: number;
  /** `NAMESPACE/NAME` */
  readonly service: string;
  readonly sticky: boolean;
  readonly targets: readonly ListenerTarget[];
}

/** Another node's switch. */
export interface NetworkPeer {
  readonly node: string;
  readonly host: string;
  readonly port: number;
}

export interface NetworkState {
  readonly node: string;
  readonly pods: readonly NetworkPod[];
  readonly services: readonly NetworkService[];
  /** `web.default.svc` and what it leads to. */
  readonly names: Readonly<
    Record<
      string,
      {
        readonly addresses: readonly string[];
        readonly services?: readonly { readonly port: number; readonly target: string }[];
      }
    >
  >;
  readonly guests: readonly LocalGuest[];
  readonly peers: readonly NetworkPeer[];
  readonly rules: readonly NetworkRule[];
  readonly listeners: readonly NetworkListener[];
}

export const EMPTY_STATE: NetworkState = {
  node: '',
  pods: [],
  services: [],
  names: {},
  guests: [],
  peers: [],
  rules: [],
  listeners: [],
};

/** What a guest's filter says first to the switch. */
export interface GuestHello {
  readonly type: 'guest';
  /** The guest's on the network of Pods. */
  readonly address: string;
  /** The address that it knows itself by, and its gateway's. */
  readonly inside: string;
  readonly gateway: string;
  readonly dns: string;
  readonly mac: string;
  /** Ports that others may reach; absent: all. */
  readonly ports?: readonly { readonly protocol: 'tcp' | 'udp'; readonly port: number }[];
}

/** What the switch says to a filter: which addresses are its to carry. `whole`: all others are not. */
export interface AddressNews {
  readonly type: 'addresses';
  readonly whole: boolean;
  readonly add: readonly string[];
  readonly remove: readonly string[];
}

/** Where the guest may go outside the cluster: what its filter holds it to. Absent: everywhere. */
export interface EgressNews {
  readonly type: 'egress';
  readonly rules?: readonly NetworkRule[];
}

/** What switches say to each other: all guests that each has. */
export interface GuestNews {
  readonly type: 'guests';
  /** It has no others than these, and those of the notes that follow. */
  readonly whole: boolean;
  readonly guests: readonly LocalGuest[];
}
