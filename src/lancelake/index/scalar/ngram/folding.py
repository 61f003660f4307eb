"""Folding of characters to ASCII letters and digits in n-gram indices of official releases.

Text is lower-cased and folded character by character, and the releases fold in two ways: those
before 14 by a table of look-alikes, those from 14 on by the decompositions of Unicode. A folded
character may become a capital letter, as lower-casing comes first.

Entries: the code point in hex, then the folding of it and the following ones, either one character
each (`:`) or separated by commas (`=`), where `_` is a character that no n-gram contains.
"""

from __future__ import annotations

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
    found: dict[int, str] = {}
    for entry in " ".join(tables).split():
        is_list = "=" in entry
        start, _, targets = entry.partition("=" if is_list else ":")
        for place, target in enumerate(targets.split(",") if is_list else targets):
            found[int(start, 16) + place] = target
    return found
