# Alizadeh et al., DCTCP, SIGCOMM 2010, as the HPCC evaluation uses it.
# Bytes, cumulative percent; linear between the knots.
0 0
10000 15
20000 20
30000 30
50000 40
80000 53
200000 60
1000000 70
2000000 80
5000000 90
10000000 97
30000000 100
