"""NGRAM indices: texts that contain a text.

Text is lower-cased and folded character by character, and the releases fold in two ways: those
before 14 by a table of look-alikes, those from 14 on by the decompositions of Unicode. A folded
character may become a capital letter, as lower-casing comes first.

Entries: the code point in hex, then the folding of it and the following ones, either one character
each (`:`) or separated by commas (`=`), where `_` is a character that no n-gram contains.

Every character is folded to letters and digits by `folding`, or to neither. Three consecutive
letters or digits are a trigram; its number has these digits in base 37.

Collected pairs are sorted and spilled to disk when they exceed the memory limit, and merged at the
end.
"""

from __future__ import annotations

import functools
import heapq
import itertools
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelake.data.codec.index_file import IndexFileReader, SegmentFolder
from lancelake.data.codec.official import fresh_path
from lancelake.errors import CorruptTableError
from lancelake.expr.build import AllOf, AnyOf, Contains, Need, need_of
from lancelake.expr.condition import Leaf
from lancelake.expr.literals import is_text
from lancelake.format.index_meta import IndexDetails, IndexFile
from lancelake.format.row_address import decode_treemap, encode_treemap
from lancelake.index import cache, kind
from lancelake.index import kind as index_kind
from lancelake.index.row_sets import EMPTY, Answer, RowIds, U64Array, union

IN_ALL = """
b2:23 b9:1 c0=a,a,a,a,a,a,ae,c,e,e,e,e,i,i,i,i,d,n,o,o,o,o,o
d8=o,u,u,u,u,y,th,ss,a,a,a,a,a,a,ae,c,e,e,e,e,i,i,i,i,d,n,o,o,o,o,o
f8=o,u,u,u,u,y,th,y,a,a,a,a,a,a,c,c,c,c,c,c,c,c,d,d,d,d,e,e,e,e,e,e,e,e,e,e,g,g,g,g
120=g,g,g,g,h,h,h,h,i,i,i,i,i,i,i,i,i_,i,ij,ij,j,j,k,k
139=l,l,l,l,l,l,l,l,l,l,n,n,n,n,n,n,n,n,n,o,o,o,o,o,o,oe,oe,r,r,r,r,r,r,s,s,s,s,s,s,s
161:sttttttuuuuuuuuuuuuwwyyyzzzzzzs 1a0:oo 1af:uu
1c4=dz,dz,dz,lj,lj,lj,nj,nj,nj,a,a,i,i,o,o,u,u,u,u,u,u,u,u,u,u 1de=a,a,a,a,ae,ae 1e8:kkoooo
1f0=j,dz,dz,dz,g,g 1f8=n,n,a,a,ae,ae,o,o,a,a,a,a,e,e,e,e,i,i,i,i,o,o,o,o,r,r,r,r,u,u,u,u,s,s,t,t
21e:hh 226:aaeeooooooooyy 1d62:iruv 1e00:aabbbbbbccddddddddddeeeeeeeeeeffgghhhhhhh
1e29:hhhiiiikkkkkkllllllllmmmmmmnnnnnnnnoooooo 1e52:oopppprrrrrrrrssssssssssttttttttuuuuuuuuu
1e7b:uvvvvwwwwwwwwwwxxxxyyzzzzzzhtwya 1e9e=ss 1ea0:aaaaaaaaaaaaaaaaaaaaaaaaeeeeeeeeeeeeeeeei
1ec9:iiioooooooooooooooooooooooouuuuuuuuuuuuuu 1ef2:yyyyyyyy 2070:0i 2074:456789 207f:n0123456789
2090:aeox 212a:ka 2460=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20
2488=1_,2_,3_,4_,5_,6_,7_,8_,9_,10_,11_,12_,13_,14_,15_,16_,17_,18_,19_,20_
24b6:abcdefghijklmnopqrstuvwxyzabcdefghijklmno 24df:pqrstuvwxyz0 2c7c:j fb00=ff,fi,fl,ffi,ffl
fb06=st ff10:0123456789 ff21:abcdefghijklmnopqrstuvwxyz ff41:abcdefghijklmnopqrstuvwxyz
"""
"""Folding of all releases."""

BEFORE_14 = """
138:q 180:bbbb 186:occdddd 18e:eaeffg 195=hv 197:ikkl 19c:mnno 1a4:ppR 1ab:tttt 1b2:vyyzz 1bf:w
1dd:e 1e4:GGGG 1f6=hv,w 21c:zz 220=n,d,ou,ou,z,z 234=l,n,t,j,db,qp,a,c,c,l,t,s,z
243:buveejjqqrryya 253:bocddeaaeeeejggG 265:hh 268:i 26a:Illl 26f=m,m,m,n,n,N,o,OE 27c:rrrrRRs
284:j 287:ttu 28b:vvwy2zz 297:C 299:BeGHjkLq 2a3=dz 2a5=dz,ts 2a8=tc 2aa=ls,lz 2ae:hh
1d00=A,AE,ae,B,C,D,D,E,e,i,J,K,L,M,N,O,O 1d14=oe,OU,o,o,P,R,R,T,U 1d20:V03
1d6b=ue,b,d,f,m,n,p,r,r,s,t,z,g 1d79=g,th,I,i,p,U 1d80:bdfgklmnprs 1d8c:vxza 1d91:deeeaio 1d99:u
1e9b:fss 1efa=ll,ll 1efe:yy 2094:a 2183:cc
24eb=11,12,13,14,15,16,17,18,19,20,1,2,3,4,5,6,7,8,9,10,0
2776=1,2,3,4,5,6,7,8,9,10,1,2,3,4,5,6,7,8,9,10,1,2,3,4,5,6,7,8,9,10 2c60:lllprathhkkzz 2c6e:ma
2c71:vwwvhh 2c78:e 2c7a:oE 2c7e:sz a728=tz,tz
a730=F,S,aa,aa,ao,ao,au,au,av,av,av,av,ay,ay,c,c,k,k,k,k,k,k,l,l,l,l,o,o,o,o,oo,oo,p,p
a752:ppppqqqqrr a75e=v,v,vy,vy,z,z a766=th,th a779:ddffgggllrrSS a78d:h a7aa:heglI a7b0:ktj
a7c5:sz a7fb:FpMIM
"""
"""Additional folding of releases before 14."""

SINCE_14 = """
aa:a ba:o bc=14,12,34 138:k 1e6:gg 2b0:h 2b2:jr 2b7:wy 2e1:lsx 1d2c=A,AE,B 1d30:DE 1d33:GHIJKLMN
1d3c:O 1d3e:PRTUWa 1d47:bde 1d4d:g 1d4f:kmno 1d56:ptu 1d5b:v 1d9c:c 1d9e:d 1da0:f 1dbb:z 1e9b:s
2095:hklmnpst 20a8=Rs 2100=a_c,a_s,C,C 2105=c_o,c_u 2109:FgHHHhhIILl 2115=N,No 2119:PQRRR
2120=SM,TEL,TM 2124:Z 2128:Z 212c:BC 212f:eEF 2133:Mo 2139:i 213b=FAX 2145:Ddeij
2150=17,19,110,13,23,15,25,35,45,16,56,18,38,58,78,1,i,ii,iii,iv,v,vi,vii,viii,ix,x,xi
216b=xii,l,c,d,m,i,ii,iii,iv,v,vi,vii,viii,ix,x,xi,xii,l,c,d,m 2189=03 2c7d:V
3250=PTE,21,22,23,24,25,26,27,28,29,30,31,32,33,34,35
32b1=36,37,38,39,40,41,42,43,44,45,46,47,48,49,50,1,2,3,4,5,6,7,8,9,10,11,12,Hg,erg,eV 32cf=LTD
3358=0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,hPa,da,AU,bar,oV
3376=pc,dm,dm2,dm3,IU
3380=pA,nA,A,mA,kA,KB,MB,GB,cal,kcal,pF,nF,F,g,mg,kg,Hz,kHz,MHz,GHz,THz,l,ml,dl,kl,fm
339a=nm,m,mm,cm,km,mm2,cm2,m2,km2,mm3,cm3,m3,km3,ms,ms2,Pa,kPa,MPa,GPa,rad,rads,rads2
33b0=ps,ns,s,ms,pV,nV,V,mV,kV,MV,pW,nW,0,mW,kW,MW,k,M,a_,Bq,cc,cd,Ckg,Co_,dB,Gy,ha,HP
33cc=in,KK,KM,kt,lm,ln,log,lx,mb,mil,mol,PH,p_,PPM,PR,sr,Sv,Wb,Vm,Am,1,2,3,4,5,6,7,8,9
33e9=10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,gal a7f1:SCFQ a7f8=H,oe
fb05=st 10783=ae 10795:h 107a2:o 107a5:q 1ccd6:ABCDEFGHIJKLMNOPQRSTUV01230123456789
1d400:ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmno 1d429:pqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZabcd
1d452:efg 1d456:ijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVW 1d47f:XYZabcdefghijklmnopqrstuvwxyzA
1d49e:CD 1d4a2:G 1d4a5:JK 1d4a9:NOPQ 1d4ae:STUVWXYZabcd 1d4bb:f 1d4bd:hijklmn
1d4c5:pqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZabcd 1d4ee:efghijklmnopqrstuvwxyzAB 1d507:DEFG
1d50d:JKLMNOPQ 1d516:STUVWXY 1d51e:abcdefghijklmnopqrstuvwxyzAB 1d53b:DEFG 1d540:IJKLM 1d546:O
1d54a:STUVWXY 1d552:abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNO
1d57b:PQRSTUVWXYZabcdefghijklmnopqrstuvwxyzABCD 1d5a4:EFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrs
1d5cd:tuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZabcdefgh 1d5f6:ijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVW
1d61f:XYZabcdefghijklmnopqrstuvwxyzABCDEFGHIJKL 1d648:MNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyzA
1d671:BCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnop 1d69a:qrstuvwxyzi
1d7ce:01234567890123456789012345678901234567890 1d7f7:123456789
1f100=0_,0_,1_,2_,3_,4_,5_,6_,7_,8_,9_ 1f12a=S,C,R,CD,WZ
1f130=A,B,C,D,E,F,G,H,I,J,K,L,M,N,O,P,Q,R,S,T,U,V,W,X,Y,Z,HV,MV,SD,SS,PPV,WC 1f16a=MC,MD,MR
1f190=DJ 1fbf0:0123456789
"""
"""Additional folding of releases from 14 on."""


def folding(*tables: str) -> dict[int, str]:
    """Return the folding of characters; `_` and all other characters are in no n-gram."""
    targets_of: dict[int, str] = {}
    for entry in " ".join(tables).split():
        is_list = "=" in entry
        start, _, targets = entry.partition("=" if is_list else ":")
        for place, target in enumerate(targets.split(",") if is_list else targets):
            targets_of[int(start, 16) + place] = target
    return targets_of


U32: TypeAlias = npt.NDArray[np.uint32]
I64: TypeAlias = npt.NDArray[np.int64]
Codes: TypeAlias = npt.NDArray[np.int16]

WIDTH = 3
_BASE = 37
_NONE = -1
_ASCII = 128
# Bytes of text that are processed at once.
_SLICE_BYTES = 4 << 20


class Trigrams(NamedTuple):
    """Trigrams, and the row of each; a trigram of a row may be repeated."""

    tokens: U32
    rows: I64


class _Alphabet(NamedTuple):
    """Folding of characters: the number of digits, and their offset in `digits`."""

    counts: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int32]
    digits: Codes


def trigrams_of(texts: pa.Array) -> Iterator[Trigrams]:
    """Yield the trigrams of texts in any official release; rows are numbered from zero."""
    wide = texts.cast(pa.large_string())
    offsets = np.frombuffer(wide.buffers()[1], dtype=np.int64)
    offsets = offsets[wide.offset : wide.offset + len(wide) + 1]
    data = np.frombuffer(wide.buffers()[2] or b"", dtype=np.uint8)
    first = 0
    while first < len(wide):
        end = int(np.searchsorted(offsets, offsets[first] + _SLICE_BYTES, side="right")) - 1
        last = max(first + 1, end)
        part = data[offsets[first] : offsets[last]]
        for trigrams in _of_slice(part, offsets[first : last + 1] - offsets[first]):
            yield Trigrams(trigrams.tokens, trigrams.rows + first)
        first = last


def required_by(text: str) -> list[int]:
    """Return the trigrams of every text that contains a substring, in all releases."""
    points, offsets = _points(np.frombuffer(text.encode(), dtype=np.uint8), None)
    digits, rows = _fold(points, offsets, _in_all())
    return [int(token) for token in np.unique(_number(digits, rows).tokens)]


def _of_slice(data: npt.NDArray[np.uint8], offsets: I64) -> Iterator[Trigrams]:
    if not len(data) or data.max() < _ASCII:
        rows = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        yield _number(_ascii()[data], rows)
        return
    points, starts = _points(data, offsets)
    yield _number(*_fold(points, starts, _before_14()))
    if bool(_is_folded_in_two_ways()[np.minimum(points, _outside())].any()):
        yield _number(*_fold(points, starts, _since_14()))


def _points(data: npt.NDArray[np.uint8], offsets: I64 | None) -> tuple[U32, I64]:
    """Return the code points of UTF-8 bytes, and the offset of each row."""
    points = np.frombuffer(data.tobytes().decode().encode("utf-32-le"), dtype="<u4")
    if offsets is None:
        return points, np.array([0, len(points)])
    begun = np.concatenate([[0], np.cumsum((data & 0xC0) != 0x80)])  # noqa: PLR2004  # UTF-8
    return points, begun[offsets]


def _fold(points: U32, offsets: I64, alphabet: _Alphabet) -> tuple[Codes, I64]:
    """Return the digits of folded characters, and the row of each."""
    points = np.minimum(points, len(alphabet.counts) - 1)
    counts = alphabet.counts[points].astype(np.int64)
    rows = np.repeat(np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)), counts)
    ends = np.cumsum(counts)
    within = np.arange(len(rows)) - np.repeat(ends - counts, counts)
    return alphabet.digits[np.repeat(alphabet.starts[points], counts) + within], rows


def _number(digits: Codes, rows: I64) -> Trigrams:
    first, second, third = digits[:-2], digits[1:-1], digits[2:]
    is_whole = (first != _NONE) & (second != _NONE) & (third != _NONE)
    is_whole &= rows[:-2] == rows[2:]
    places = np.flatnonzero(is_whole)
    high, middle, low = (part[places].astype(np.uint32) for part in (first, second, third))
    return Trigrams(high * _BASE**2 + middle * _BASE + low, rows[places])


def _digit(letter: str) -> int:
    """Return the digit of a letter; digits of capitals are computed modulo 256."""
    if not (letter.isascii() and letter.isalnum()):
        return _NONE
    place = ord(letter) - ord("0") if letter.isdecimal() else ord(letter) - ord("a") + 10
    return (place + 1) % 256


@functools.cache
def _ascii() -> Codes:
    return np.array([_digit(chr(point).lower()) for point in range(_ASCII)], dtype=np.int16)


def _alphabet(table: dict[int, str]) -> _Alphabet:
    """Return an alphabet; its last character represents all following ones."""
    size = _outside() + 1
    counts, starts = np.ones(size, dtype=np.uint8), np.full(size, _ASCII, dtype=np.int32)
    starts[:_ASCII] = np.arange(_ASCII)
    digits = [*_ascii().tolist(), _NONE]
    for point, target in table.items():
        counts[point], starts[point] = len(target), len(digits)
        digits += map(_digit, target)
    return _Alphabet(counts, starts, np.array(digits, dtype=np.int16))


@functools.cache
def _outside() -> int:
    """Return the first code point after all that are folded."""
    return max(folding(IN_ALL, BEFORE_14, SINCE_14)) + 1


@functools.cache
def _in_all() -> _Alphabet:
    return _alphabet(folding(IN_ALL))


@functools.cache
def _before_14() -> _Alphabet:
    return _alphabet(folding(IN_ALL, BEFORE_14))


@functools.cache
def _since_14() -> _Alphabet:
    return _alphabet(folding(IN_ALL, SINCE_14))


@functools.cache
def _is_folded_in_two_ways() -> npt.NDArray[np.bool_]:
    is_folded = np.zeros(_outside() + 1, dtype=np.bool_)
    is_folded[list(folding(BEFORE_14, SINCE_14))] = True
    return is_folded


FILE = "ngram_postings.lance"
TOKENS, POSTINGS = "tokens", "posting_list"
NULL_TOKEN = 0
"""Token of rows with a null text."""

_SCHEMA = pa.schema(
    [pa.field(TOKENS, pa.uint32()), pa.field(POSTINGS, pa.binary(), nullable=False)]
)
# Most pairs of a trigram and a row in memory: six bytes each, twelve more for sorting.
PAIRS_AT_ONCE = 16 << 20
_BYTES_AT_ONCE = 4 << 20
_ROWS_AT_ONCE = 4096


class Posting(NamedTuple):
    """The rows of a trigram."""

    token: int
    rows: RowIds


def gather(batches: Iterable[pa.RecordBatch], pairs_at_once: int) -> list[Iterator[Posting]]:
    """Return the postings of rows, as sorted streams."""
    runs: list[Iterator[Posting]] = []
    pending = _Pending()
    for batch in batches:
        for start in range(0, batch.num_rows, _ROWS_AT_ONCE):
            pending.add(batch.slice(start, _ROWS_AT_ONCE))
            if pending.pairs >= pairs_at_once:
                runs.append(_put_aside(pending.postings()))
                pending = _Pending()
    return [*runs, pending.postings()]


class _Pending:
    """Pairs of a trigram and a row, in memory."""

    def __init__(self) -> None:
        self.pairs = 0
        self._tokens: list[U32] = []
        self._places: list[U32] = []
        self._ids: list[U64Array] = []
        self._rows = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Add the trigrams of texts, and the rows with a null text."""
        texts, ids = (
            batch.column(index_kind.VALUE),
            np.asarray(batch.column(index_kind.ROW_ID), dtype=np.uint64),
        )
        nulls = np.flatnonzero(np.asarray(texts.is_null()))
        self._take(Trigrams(np.full(len(nulls), NULL_TOKEN, dtype=np.uint32), nulls))
        for trigrams in trigrams_of(texts):
            self._take(trigrams)
        self._ids.append(ids)
        self._rows += len(ids)

    def _take(self, trigrams: Trigrams) -> None:
        self._tokens.append(trigrams.tokens)
        self._places.append((trigrams.rows + self._rows).astype(np.uint32))
        self.pairs += len(trigrams.tokens)

    def postings(self) -> Iterator[Posting]:
        """Yield the rows of each trigram, in order."""
        if not self.pairs:
            return
        tokens, places = np.concatenate(self._tokens), np.concatenate(self._places)
        ids = np.concatenate(self._ids)
        self._tokens, self._places = [], []
        # NumPy sorts 16-bit numbers by radix; only trigrams of folded capitals need more bits.
        short = tokens.astype(np.uint16) if tokens.max() < 1 << 16 else tokens
        order = np.argsort(short, kind="stable")
        tokens, places = tokens[order], places[order]
        starts = np.flatnonzero(np.concatenate([[True], tokens[1:] != tokens[:-1]]))
        for start, end in itertools.pairwise([*starts.tolist(), len(tokens)]):
            # A repeated trigram of a text yields its row twice; the set of rows removes duplicates.
            yield Posting(int(tokens[start]), RowIds.of(ids[places[start:end]]))


def merge(streams: Sequence[Iterable[Posting]]) -> Iterator[Posting]:
    """Yield the rows of each trigram in sorted streams."""
    by_token = operator.attrgetter("token")
    whole = heapq.merge(*streams, key=by_token)
    for token, postings in itertools.groupby(whole, key=by_token):
        parts = [posting.rows for posting in postings]
        rows = parts[0] if len(parts) == 1 else union(parts)
        if rows:
            yield Posting(token, rows)


def write(postings: Iterable[Posting], folder: SegmentFolder) -> IndexFile:
    """Write the file of a segment."""
    writer = folder.create(FILE, _SCHEMA)
    for batch in _batches(postings):
        writer.write(batch)
    return writer.finish()


def decode(data: bytes, path: str) -> RowIds:
    """Read the rows of a trigram."""
    return RowIds.within(decode_treemap(data, what=f"a posting list of index file {path}"))


def read(batches: Iterable[pa.RecordBatch], path: str) -> Iterator[Posting]:
    """Yield the postings of a file, which must be sorted."""
    before = -1
    for batch in batches:
        tokens, lists = batch.column(TOKENS).to_pylist(), batch.column(POSTINGS)
        for token, data in zip(tokens, lists, strict=True):
            if token is None or token <= before:
                raise CorruptTableError(f"index file {path} is not sorted", path=path)
            before = token
            yield Posting(token, decode(data.as_py(), path))


def _batches(postings: Iterable[Posting]) -> Iterator[pa.RecordBatch]:
    tokens: list[int] = []
    lists: list[bytes] = []
    size = 0
    for posting in postings:
        tokens.append(posting.token)
        lists.append(encode_treemap(posting.rows.parts))
        size += len(lists[-1])
        if size >= _BYTES_AT_ONCE or len(tokens) >= _ROWS_AT_ONCE:
            yield _batch(tokens, lists)
            tokens, lists, size = [], [], 0
    if tokens:
        yield _batch(tokens, lists)


def _batch(tokens: list[int], lists: list[bytes]) -> pa.RecordBatch:
    columns = [pa.array(tokens, pa.uint32()), pa.array(lists, pa.binary())]
    return pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)


def _put_aside(postings: Iterator[Posting]) -> Iterator[Posting]:
    """Spill postings to a local file, and return a stream that reads them back."""
    path = fresh_path()
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, _SCHEMA) as writer:
        for batch in _batches(postings):
            writer.write_batch(batch)
    return _fetch(path)


def _fetch(path: Path) -> Iterator[Posting]:
    try:
        with pa.OSFile(str(path)) as source, pa.ipc.open_stream(source) as reader:
            yield from read(reader, str(path))
    finally:
        path.unlink(missing_ok=True)


_DETAILS = IndexDetails(type_url="/lance.table.NGramIndexDetails", value=b"")
_LISTS_AT_ONCE = 64


class _NGram(index_kind.IndexKind):
    """The kind."""

    name = "NGRAM"
    details_type = "ngramindexdetails"

    def accepts(self, dtype: pa.DataType) -> bool:
        """Whether columns of a type can be indexed: strings only."""
        return is_text(dtype)

    def open(self, facts: index_kind.SegmentFacts) -> _Segment:
        """Open a segment."""
        return _Segment(facts)

    def merge(
        self, segments: index_kind.Segments, rows: index_kind.BuildInput, folder: SegmentFolder
    ) -> index_kind.BuiltSegment:
        """Write the postings of kept rows of segments and of new rows."""
        kind.ensure_known(self.name, rows.parameters, ())
        old = [_restrict(_Segment(facts).postings(), keep) for facts, keep in segments]
        new = gather(rows.batches, PAIRS_AT_ONCE)
        return _write_segment(merge([*old, *new]), folder)

    def remap(
        self, facts: index_kind.SegmentFacts, row_map: index_kind.RowMap, folder: SegmentFolder
    ) -> index_kind.BuiltSegment | None:
        """Write a segment with the new ids of its rows."""
        return _write_segment(_remap(_Segment(facts).postings(), row_map), folder)


def _write_segment(postings: Iterable[Posting], folder: SegmentFolder) -> index_kind.BuiltSegment:
    entry = write(postings, folder)
    return index_kind.BuiltSegment(details=_DETAILS, index_version=0, files=(entry,))


def _restrict(postings: Iterable[Posting], keep: RowIds | None) -> Iterator[Posting]:
    for posting in postings:
        yield posting if keep is None else Posting(posting.token, posting.rows & keep)


def _remap(postings: Iterable[Posting], row_map: index_kind.RowMap) -> Iterator[Posting]:
    for posting in postings:
        ids = row_map(posting.rows.to_array())
        rows = RowIds.of(ids[ids != np.uint64(index_kind.DROPPED)])
        if rows:
            yield Posting(posting.token, rows)


class _Segment(index_kind.OpenSegment):
    """A segment that can be searched."""

    def __init__(self, facts: index_kind.SegmentFacts) -> None:
        self._facts = facts
        place = facts.folder.file(FILE)
        self._path, self._uri = place.path, cache.of(place)

    @functools.cached_property
    def _file(self) -> IndexFileReader:
        file = self._facts.folder.open(FILE)
        file.require(TOKENS, POSTINGS)
        return file

    @functools.cached_property
    def _places(self) -> dict[int, int]:
        """The row of the file that has a trigram."""
        tokens = self._file.read(columns=[TOKENS]).column(0).to_pylist()
        return {token: place for place, token in enumerate(tokens)}

    def answer(self, leaf: Leaf) -> Answer | None:
        """Answer a condition that requires certain trigrams."""
        rows = self._meeting(need_of(leaf, self._facts.dtype))
        return None if rows is None else Answer.at_most(rows)

    def _meeting(self, need: Need) -> RowIds | None:
        """Return the rows that may meet a need; None if trigrams cannot decide it."""
        match need:
            case Contains():
                return self._containing(need.text)
            case AllOf():
                parts = [self._meeting(part) for part in need.parts]
                decided = [rows for rows in parts if rows is not None]
                return functools.reduce(RowIds.__and__, decided) if decided else None
            case AnyOf():
                parts = [self._meeting(part) for part in need.parts]
                decided = [rows for rows in parts if rows is not None]
                return union(decided) if len(decided) == len(parts) else None
            case _:
                assert_never(need)

    def _containing(self, text: str) -> RowIds | None:
        tokens = required_by(text)
        if not tokens:
            return None
        places = [self._places.get(token) for token in tokens]
        stored = sorted(place for place in places if place is not None)
        if len(stored) < len(places):
            return EMPTY
        return functools.reduce(RowIds.__and__, sorted(self._rows_of(stored), key=len))

    def _rows_of(self, places: Sequence[int]) -> list[RowIds]:
        """Return the rows of the trigrams at some rows of the file, in any order."""
        cached = cache.find_all(self._uri, [(POSTINGS, place) for place in places])
        parts = [rows for rows in cached if isinstance(rows, RowIds)]
        missing = [place for place, rows in zip(places, cached, strict=True) if rows is None]
        if not missing:
            return parts
        cache.count_loaded(len(missing))
        lists = self._file.take(missing, columns=[POSTINGS]).column(0)
        for place, data in zip(missing, lists, strict=True):
            rows = decode(data.as_py(), self._path)
            cache.keep(self._uri, (POSTINGS, place), rows, rows.size_bytes)
            parts.append(rows)
        return parts

    def postings(self) -> Iterator[Posting]:
        """Stream the rows of each trigram."""
        return read(self.entries(), self._path)

    def entries(self) -> Iterator[pa.RecordBatch]:
        """Stream trigrams and their rows, in order."""
        yield from self._file.batches(batch_rows=_LISTS_AT_ONCE)

    def verify(self) -> None:
        """Decode the rows of all trigrams."""
        for _ in self.postings():
            pass

    def statistics(self) -> Mapping[str, Any]:
        """Return the number of trigrams."""
        return {"num_ngrams": len(self._places)}


NGRAM = _NGram()
