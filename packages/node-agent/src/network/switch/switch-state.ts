/** What the agent tells the switch of its node: tables, of which it is sent the entries that have become different. */

/** A Pod that has an address on the network of Pods. */
export interface NetworkPod {
  readonly address: string;
  /** Where it may be: two while its guest moves. */
  readonly nodes: readonly string[];
  /** Ids of rules of what may come in, and go out; absent: everything may. */
  readonly ingress?: readonly string[];
  readonly egress?: readonly string[];
}

/** What a NetworkPolicy lets pass, of one of its rules. */
export interface PassRule {
  /** The Pods at the other end. */
  readonly addresses?: readonly string[];
  readonly blocks?: readonly { readonly cidr: string; readonly except: readonly string[] }[];
  /** Everybody, instead of those. */
  readonly anybody?: boolean;
  /** Of the Pod that is spoken to; absent: all, of any protocol. */
  readonly ports?: readonly { readonly protocol: 'tcp' | 'udp' | 'sctp'; readonly from: number; readonly to: number }[];
}

export interface NetworkRule extends PassRule {
  /** The same while the policy is there, so that Pods need not change with what it lets pass. */
  readonly id: string;
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
  /** `sessionAffinity: ClientIP`: so long after a connection the next one of a client goes to the same endpoint. */
  readonly affinitySeconds?: number;
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
  readonly affinitySeconds?: number;
  readonly targets: readonly ListenerTarget[];
}

/** Another node's switch. */
export interface NetworkPeer {
  readonly node: string;
  readonly host: string;
  readonly port: number;
}

/** `web.default.svc` and what it leads to. */
export interface NetworkName {
  readonly name: string;
  readonly addresses: readonly string[];
  /** It is the name of its addresses too, when they are asked for backwards. */
  readonly isOwn?: boolean;
  readonly services?: readonly { readonly port: number; readonly target: string }[];
  /** Another name that is meant (`spec.externalName`), in lower case. */
  readonly alias?: string;
}

/** A network beside that of Pods: a segment of the second layer. Only those that this node has Pods on. */
export interface NetworkSegment {
  /** The NetworkAttachmentDefinition, `NAMESPACE/NAME`. */
  readonly name: string;
  /** That have Pods on it. */
  readonly nodes: readonly string[];
}

/** A card of a guest of this node on a segment. */
export interface NetworkCard {
  /** Where QEMU waits for the switch, from the directory of that. */
  readonly socket: string;
  readonly segment: string;
  /** The one hardware address that it may send under; absent: any. */
  readonly mac?: string;
}

/** A program of this node that is a Pod of the network: its port leads to the socket of the agent (`SWITCH_FILES.exports`). */
export interface NetworkProgram {
  readonly address: string;
  readonly port: number;
}

/** The tables, and what tells the entries of each apart. */
export const TABLES = {
  pods: ({ address }: NetworkPod): string => address,
  rules: ({ id }: NetworkRule): string => id,
  services: ({ address, protocol, port }: NetworkService): string => `${protocol}/${address}/${port}`,
  names: ({ name }: NetworkName): string => name,
  guests: ({ address }: LocalGuest): string => address,
  peers: ({ node }: NetworkPeer): string => node,
  segments: ({ name }: NetworkSegment): string => name,
  cards: ({ socket }: NetworkCard): string => socket,
  programs: ({ address }: NetworkProgram): string => address,
  listeners: ({ service, protocol, host, port }: NetworkListener): string => `${service} ${protocol}/${host}/${port}`,
} as const;

export type TableName = keyof typeof TABLES;
export const TABLE_NAMES = Object.keys(TABLES) as TableName[];
export type Entry<T extends TableName> = Parameters<(typeof TABLES)[T]>[0];

/** Entries of one table that are new or different, and the keys of those that are gone. */
export interface TableChange<T> {
  readonly set?: readonly T[];
  readonly remove?: readonly string[];
}

/** What has become different. */
export type NetworkChange = {
  readonly [T in TableName]?: TableChange<Entry<T>>;
} & {
  /** The node of the switch. */
  readonly node: string;
  /** Whatever was there before and is not named here is gone. */
  readonly whole?: true;
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
  /** Who answers for names; absent: the cluster for its own, and the host for all others. */
  readonly resolvers?: NameResolvers;
}

/** Who is asked for a name of a guest, one after the other; a question for a name of the cluster goes to that alone. */
export interface NameResolvers {
  readonly cluster: boolean;
  readonly host: boolean;
  /** Addresses. */
  readonly servers: readonly string[];
}

/** What the switch says to a filter: which addresses are its to carry. `whole`: all others are not. */
export interface AddressChange {
  readonly type: 'addresses';
  readonly whole: boolean;
  readonly add: readonly string[];
  readonly remove: readonly string[];
}

/** Where the guest may go outside the cluster: what its filter holds it to. Absent: everywhere. */
export interface EgressChange {
  readonly type: 'egress';
  readonly rules?: readonly PassRule[];
}

/** What switches say to each other: all guests that each has. */
export interface GuestChange {
  readonly type: 'guests';
  /** It has no others than these, and those of the notes that follow. */
  readonly whole: boolean;
  readonly guests: readonly LocalGuest[];
}
