/** Icons as paths in a box of 16, so that the page fetches no file and no font for them. */
const SHAPES = {
  check: "M3.5 8.5l3 3 6-7",
  cross: "M4.5 4.5l7 7M11.5 4.5l-7 7",
  clock: "M8 4.5V8l2.5 1.5M14 8A6 6 0 112 8a6 6 0 0112 0z",
  play: "M5.5 3.5v9l7-4.5z",
  pause: "M5.5 4v8M10.5 4v8",
  hand: "M8 2.5v6M5.5 4v5M10.5 4v5M3.5 8.5c0 3.500 2 5 4.500 5s4.500-1.500 4.500-4V6",
  alert: "M8 2.500l6 10.500H2zM8 6.500v3M8 11.500v.1",
  late: "M8 4.500V8l2.500 1.500M14 8A6 6 0 112 8a6 6 0 0112 0zM13 2l1.500 1.500",
  dot: "M8 6.500a1.500 1.500 0 110 3 1.500 1.500 0 010-3z",
  empty: "M8 2.500a5.500 5.500 0 110 11 5.500 5.500 0 010-11zM4 12l8-8",
  half: "M8 2.500a5.500 5.500 0 100 11z M8 2.500a5.500 5.500 0 010 11",
  home: "M2.500 7.500L8 3l5.500 4.500V13H10V9.500H6V13H2.500z",
  graph: "M3 4.500h3v3H3zM10 2.500h3v3h-3zM10 10.500h3v3h-3zM6 6h2.500M8.500 6V4H10M8.500 6v6H10",
  table: "M2.500 3.500h11v9h-11zM2.500 6.500h11M6.500 6.500v6",
  gear: "M8 5.700a2.300 2.300 0 110 4.600 2.300 2.300 0 010-4.600zM8 2v2M8 12v2M2 8h2M12 8h2M3.800 3.800l1.400 1.400M10.800 10.800l1.400 1.400M12.200 3.800l-1.400 1.400M5.200 10.800l-1.400 1.400",
  inbox:
    "M2.500 9.500L4.500 3h7l2 6.500v3.500h-11zM2.500 9.500h3.500c0 1 .8 1.800 2 1.800s2-.8 2-1.800h3.500",
  lock: "M4 7.500h8v6H4zM5.500 7.500V5.500a2.500 2.500 0 015 0v2",
  replay: "M3 8a5 5 0 105-5H4.500M4.500 3l2-2M4.500 3l2 2",
  filter: "M2.500 3.500h11L9.500 8.500v4.500l-3-1.500v-3z",
  list: "M5.500 4.500h8M5.500 8h8M5.500 11.500h8M2.500 4.500h.1M2.500 8h.1M2.500 11.500h.1",
  search: "M7 2.500a4.500 4.500 0 110 9 4.500 4.500 0 010-9zM10.500 10.500l3 3",
  sun: "M8 5.200a2.800 2.800 0 110 5.600 2.800 2.800 0 010-5.600zM8 1.500v1.500M8 13v1.500M1.500 8H3M13 8h1.500M3.400 3.400l1 1M11.600 11.600l1 1M12.600 3.400l-1 1M4.400 11.600l-1 1",
  moon: "M12.500 9.500A5.500 5.500 0 116.500 3a4.500 4.500 0 006 6.500z",
  key: "M5.500 8a2.500 2.500 0 110 5 2.500 2.500 0 010-5zM7.300 8.700L13 3M11 5l1.500 1.500",
  right: "M6 3.500L10.500 8 6 12.500",
  left: "M10 3.500L5.500 8l4.500 4.500",
  down: "M3.500 6L8 10.500 12.500 6",
  up: "M3.500 10L8 5.500l4.500 4.500",
  more: "M3.500 8h.1M8 8h.1M12.500 8h.1",
  copy: "M5.500 5.500h7v8h-7zM3.500 10.500v-8h7",
  out: "M6.500 3.500h-3v9h9v-3M9 3.500h3.500V7M12.500 3.500L7.500 8.500",
  bolt: "M9 1.500L3.500 9H8l-1 5.500L12.500 7H8z",
  file: "M4 1.500h5l3 3v10H4zM9 1.500v3h3",
  focus:
    "M2.500 5.500v-3h3M10.500 2.500h3v3M13.500 10.500v3h-3M5.500 13.500h-3v-3M8 6.500a1.500 1.500 0 110 3 1.500 1.500 0 010-3z",
  columns: "M2.500 3.500h4v9h-4zM9.500 3.500h4v9h-4zM6.500 6h3M6.500 10h3",
  plus: "M8 3.500v9M3.500 8h9",
  minus: "M3.500 8h9",
  shield: "M8 1.500l5 2v4c0 3.500-2.200 5.800-5 7-2.800-1.200-5-3.500-5-7v-4z",
} as const;

export type IconName = keyof typeof SHAPES;

interface Props {
  name: IconName;
  size?: number;
  className?: string;
}

/** A picture beside a word; screen readers skip it. */
export function Icon({ name, size = 16, className = "" }: Props) {
  return (
    <svg
      className={`icon ${className}`}
      width={size}
      height={size}
      viewBox="0 0 16 16"
      aria-hidden="true"
    >
      <path
        d={SHAPES[name]}
        fill="none"
        stroke="currentColor"
        strokeWidth="1.5"
        strokeLinecap="round"
        strokeLinejoin="round"
      />
    </svg>
  );
}
